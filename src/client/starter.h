// Common code of the C API's collectives: the checks of their arguments, and the Starter, which finds or
// builds the schedule for these arguments and starts it. Threads: a Starter holds the context's lock while it
// lives.
#pragma once

#include "base/log.h"
#include "client/caught.h"
#include "client/context.h"

#include <offpath/collectives.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace offpath::client {

constexpr std::uint64_t max_bytes = schedule::max_slot_bytes;

inline bool multiplies(std::uint64_t a, std::uint64_t b) {
    return a == 0 || b <= max_bytes / a;
}

inline bool fits(std::span<const std::size_t> bytes, std::span<const std::size_t> offsets) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
        if (bytes[i] > max_bytes || offsets[i] > max_bytes - bytes[i]) return false;
    return true;
}

inline bool any(std::span<const std::size_t> bytes) {
    for (std::size_t b : bytes)
        if (b != 0) return true;
    return false;
}

inline std::size_t extent(std::span<const std::size_t> bytes, std::span<const std::size_t> offsets) {
    std::size_t end = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i)
        if (bytes[i] != 0) end = std::max(end, bytes[i] + offsets[i]);
    return end;
}

inline offpath_status_t invalid(const char* call, const char* what) {
    log::error(Code::arguments, "{}: {}", call, what);
    return OFFPATH_ERR_INVALID;
}

// A call in progress: the lock, the growing key, the buffers.
class Starter {
  public:
    // The key begins with the builder; key() adds the arguments. Calls that share a builder, such as
    // allgather and allgatherv, add different numbers of words.
    template <typename Builder>
    Starter(offpath_team& team, Builder* builder)
        : team_(team), context_(*team.context), guard_(context_.lock()) {
        context_.key.assign({reinterpret_cast<std::uintptr_t>(builder), team.rank, team.size});
    }
    Starter& key(std::uint64_t word) {
        context_.key.push_back(word);
        return *this;
    }
    Starter& key(std::span<const std::size_t> words) {
        context_.key.insert(context_.key.end(), words.begin(), words.end());
        return *this;
    }
    // `buffers` are those of the user slots, in order.
    template <typename Build>
    offpath_status_t run(std::initializer_list<const void*> buffers, std::unique_ptr<std::byte[]> owned,
                         offpath_request_h* request, Build&& build) {
        Status status = Status::ok;
        const RegisteredSchedule* schedule = context_.schedules.get(context_.key, build, status);
        if (schedule == nullptr) return to_c(status);
        context_.ranges.clear();
        offpath_request::Used used[2];
        std::size_t slot = 0;
        for (const void* buffer : buffers) {
            if (slot == schedule->slot_bytes.size()) break;
            const std::uint64_t bytes = schedule->slot_bytes[slot];
            const auto begin = reinterpret_cast<std::uintptr_t>(buffer);
            used[slot++] = {begin, begin + bytes};
            context_.ranges.push_back(context_.resolve(buffer, bytes));
        }
        return to_c(context_.start(team_, *schedule, context_.ranges, std::span(used, slot), std::move(owned),
                                   request));
    }

  private:
    offpath_team& team_;
    offpath_context& context_;
    std::unique_lock<std::mutex> guard_;
};

inline std::unique_ptr<std::byte[]> copy_of(const void* data, std::size_t bytes) {
    auto copy = std::make_unique_for_overwrite<std::byte[]>(bytes);
    if (bytes != 0) std::memcpy(copy.get(), data, bytes);
    return copy;
}

inline bool usable(offpath_team_h team, offpath_request_h* request) {
    return team != nullptr && request != nullptr && !team->destroyed;
}

inline std::vector<std::uint64_t> words(std::span<const std::size_t> values) {
    return {values.begin(), values.end()};
}

}  // namespace offpath::client
