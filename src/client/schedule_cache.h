// ScheduleCache: the schedules of this process that its proxy holds. A schedule is found by the values that
// it was built from (the call, the team's shape, the sizes). A new one is built, sent in parts, and kept
// under an id. Beyond the caps the least recently used are forgotten. Threads: under the context's lock.
#pragma once

#include "base/status.h"
#include "schedule/schedule.h"

#include <cstdint>
#include <functional>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

struct offpath_context;

namespace offpath::client {

struct RegisteredSchedule {
    std::uint64_t id = 0;
    std::uint64_t encoded_bytes = 0;
    std::uint64_t bytes_sent = 0;           // payload per start
    std::vector<std::uint64_t> slot_bytes;  // of the user slots, in order
    std::vector<bool> whole;                // of them: whether it uses all of the slot
    // The shared copy, its slots by their places among the user slots; no bytes: there is none.
    schedule::BufferRef shared_from, shared_to;
    std::uint64_t shared_bytes = 0;
    std::vector<std::uint64_t> key;
};

class ScheduleCache {
  public:
    static constexpr std::size_t max_schedules = 1024;
    static constexpr std::uint64_t max_bytes = 64 << 20;

    explicit ScheduleCache(offpath_context& context) : context_(context) {}

    // The schedule for `key`; `build` makes it if it is not there. Null: it could not be sent (see `status`).
    // Valid until the next call.
    template <typename Build>
    const RegisteredSchedule* get(std::span<const std::uint64_t> key, Build&& build, Status& status) {
        if (const RegisteredSchedule* found = find(key)) return found;
        return insert(key, build(), status);
    }

    // Sends a schedule that the caller keeps and later forgets itself (groups).
    Status add(const schedule::Schedule& schedule, RegisteredSchedule& registered);
    void forget(const RegisteredSchedule& registered);
    std::uint64_t built() const { return next_id_ - 1; }

  private:
    using List = std::list<RegisteredSchedule>;
    const RegisteredSchedule* find(std::span<const std::uint64_t> key);
    const RegisteredSchedule* insert(std::span<const std::uint64_t> key, const schedule::Schedule& schedule,
                                     Status& status);
    void evict();

    offpath_context& context_;
    List recent_;  // most recently used first
    std::unordered_multimap<std::uint64_t, List::iterator> by_hash_;
    std::uint64_t bytes_ = 0;
    std::uint64_t next_id_ = 1;
};

}  // namespace offpath::client
