// Code that the transport tests share: a handler that records, completions that count, patterns that show
// where a byte came from, and progress with a deadline.
#pragma once

#include "transport/transport.h"

#include <sys/resource.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace offpath::transport::test {

using namespace std::chrono_literals;

inline std::byte pattern(std::uint64_t seed, std::size_t at) {
    return static_cast<std::byte>((seed * 131 + at * 7 + (at >> 8) * 13) & 0xff);
}
inline std::vector<std::byte> make_payload(std::uint64_t seed, std::size_t bytes) {
    std::vector<std::byte> payload(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        payload[i] = pattern(seed, i);
    return payload;
}
inline bool holds_pattern(std::uint64_t seed, const std::byte* data, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
        if (data[i] != pattern(seed, i)) return false;
    return true;
}

// Counts its calls. At each call, `during` checks whether the call may come at this time.
struct Counted : Completion {
    int calls = 0;
    Status status = Status::in_progress;
    const bool* allowed = nullptr;
    bool always_allowed = true;
    Counted() {
        function = [](Completion* self, Status ended) {
            auto& counted = static_cast<Counted&>(*self);
            ++counted.calls;
            counted.status = ended;
            if (counted.allowed && !*counted.allowed) counted.always_allowed = false;
        };
    }
    Counted(const Counted&) = delete;
    // Records the return value of the call.
    Status start(Status returned) {
        if (returned != Status::in_progress) {
            ++calls;
            status = returned;
        }
        return returned;
    }
    bool done() const { return calls > 0; }
};

struct Header {
    std::uint64_t seed = 0;
    std::uint64_t bytes = 0;
    std::span<const std::byte> view() const { return std::as_bytes(std::span(this, 1)); }
    static Header of(const Incoming& message) {
        Header header;
        if (message.header.size() >= sizeof header)
            std::memcpy(&header, message.header.data(), sizeof header);
        return header;
    }
};

struct Recorder : Handler {
    struct Message {
        std::vector<std::byte> header, data;
        std::size_t bytes = 0;
        void* rendezvous = nullptr;
    };
    std::vector<Message> messages;
    std::vector<Endpoint*> lost;
    std::function<void(const Incoming&)> then;

    void on_message(const Incoming& message) override {
        Message copy;
        copy.header.assign(message.header.begin(), message.header.end());
        if (message.data) copy.data.assign(message.data, message.data + message.bytes);
        copy.bytes = message.bytes;
        copy.rendezvous = message.rendezvous;
        messages.push_back(std::move(copy));
        if (then) then(message);
    }
    void on_endpoint_lost(Endpoint& endpoint) override { lost.push_back(&endpoint); }
};

// Progresses all transports until `done` holds or the time is up. Returns whether it holds.
template <typename Done>
bool pump(std::initializer_list<Transport*> transports, Done done, std::chrono::milliseconds limit = 20s) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!done()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        for (Transport* transport : transports)
            transport->progress();
    }
    return true;
}

// True: this process may open this many descriptors.
inline bool room_for_descriptors(rlim_t count) {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= count;
}

}  // namespace offpath::transport::test
