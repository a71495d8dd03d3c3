#include "raw.h"

#include "link/choice/transport_choice.h"
#include "link/wire.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace offpath::link::bench {

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

void put(const std::string& path, std::span<const std::byte> bytes) {
    std::ofstream(path + ".part", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    std::filesystem::rename(path + ".part", path);
}

std::vector<std::byte> get(const std::string& path) {
    const double limit = now_s() + 20;
    while (!std::filesystem::exists(path)) {
        if (now_s() > limit) throw std::runtime_error("the other side did not come: no file " + path);
        usleep(1000);
    }
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    std::filesystem::remove(path);
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

Raw::Raw(const std::string& way, const std::string& devices, const std::string& dir, bool host)
    : host_(host) {
    std::string problem;
    const Status status = way == "ucx" ? make_ucx_way(devices, transport_, problem)
                                       : make_tcp_way(devices, !host, transport_, problem);
    if (status != Status::ok) throw std::runtime_error(problem);
    transport_->set_handler(this);
    put(dir + (host ? "/raw-host-" : "/raw-device-") + way, transport_->address());
    if (transport_->connect(get(dir + (host ? "/raw-device-" : "/raw-host-") + way), &peer_) != Status::ok)
        throw std::runtime_error("cannot connect");
}

void Raw::send(Header header, std::span<const std::byte> payload) {
    if (transport_->post(*peer_, std::as_bytes(std::span(&header, 1)), payload) != Status::ok)
        throw std::runtime_error("post failed");
}

void Raw::step() {
    if (lost_ && !bye_) throw std::runtime_error("the other side is gone");
    transport_->progress();
}

void Raw::on_message(const transport::Incoming& message) {
    Header header;
    std::memcpy(&header, message.header.data(), sizeof header);
    if (message.rendezvous != nullptr) transport_->discard(message.rendezvous);
    switch (header.kind) {
        case Kind::ping:
            ++pings_;
            if (!host_) send(header, {message.data, message.bytes});
            return;
        case Kind::data:
            arrived_ += message.bytes;
            return;
        case Kind::begin:
            to_pour_ = header.value;
            return;
        case Kind::end:
            if (!host_)
                send(Header{Kind::end, static_cast<double>(arrived_)});
            else
                poured_ = header.value;
            arrived_ = host_ ? arrived_ : 0;
            return;
        case Kind::bye:
            bye_ = true;
            return;
    }
}

// Sends for the given time and returns the number of bytes.
double Raw::pour(double for_seconds) {
    struct Slot : Completion {
        bool busy = false;
    };
    static std::array<Slot, 8> slots;
    static std::vector<std::byte> payload(part_bytes, std::byte{1});
    for (Slot& slot : slots)
        slot.function = [](Completion* self, Status) { static_cast<Slot*>(self)->busy = false; };
    (void)transport_->push_bytes(*peer_);
    const double end = now_s() + for_seconds;
    double bytes = 0;
    for (bool busy = true; busy;) {
        busy = false;
        for (Slot& slot : slots) {
            if (!slot.busy && now_s() < end) {
                const Header header{Kind::data, 0};
                slot.busy = transport_->send(*peer_, std::as_bytes(std::span(&header, 1)), payload.data(),
                                             payload.size(), &slot) == Status::in_progress;
                bytes += static_cast<double>(payload.size());
                busy = true;
            }
            busy = busy || slot.busy;
        }
        step();
    }
    return bytes;
}

void Raw::serve() {
    while (!bye_) {
        step();
        if (to_pour_ == 0) continue;
        const double bytes = pour(to_pour_);
        to_pour_ = 0;
        send(Header{Kind::end, bytes});
    }
}

double Raw::ping() {
    const std::vector<std::byte> payload(64);
    std::vector<double> times;
    for (int i = 0; i < 4000; ++i) {
        const std::uint64_t before = pings_;
        const double start = now_s();
        send(Header{}, payload);
        while (pings_ == before)
            step();
        if (i >= 1000) times.push_back(now_s() - start);
    }
    return median(times);
}

// The measurement ends when the last byte has arrived, not when it was sent.
double Raw::stream(bool out, double for_seconds) {
    const double start = now_s();
    poured_ = -1;
    arrived_ = 0;
    double bytes = 0;
    if (out) {
        bytes = pour(for_seconds);
        send(Header{Kind::end, bytes});
    } else {
        send(Header{Kind::begin, for_seconds});
    }
    while (poured_ < 0 || (!out && static_cast<double>(arrived_) < poured_))
        step();
    return (out ? bytes : poured_) / (now_s() - start);
}

void Raw::bye() {
    bye_ = true;
    send(Header{Kind::bye, 0});
    for (int i = 0; i < 1000; ++i)
        transport_->progress();
}

}  // namespace offpath::link::bench
