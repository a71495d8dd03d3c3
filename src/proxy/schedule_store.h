// ScheduleStore: the schedules that one client has registered, by id, each ready to start. A schedule arrives
// in parts and is decoded once the last part is there. One that cannot be decoded is kept as a failure until
// the client starts or forgets it. A forgotten schedule lives until its last start is over. Threads: the
// proxy's.
#pragma once

#include "control/commands.h"
#include "engine/schedules/plan.h"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace offpath::proxy {

struct StoredSchedule {
    std::unique_ptr<engine::Plan> plan;     // null: failed
    std::vector<std::uint64_t> slot_bytes;  // of the user slots, in order
    Status failure = Status::ok;
    std::uint32_t running = 0;
    std::uint64_t encoded_bytes = 0;
    bool forgotten = false;
};

class ScheduleStore {
  public:
    // The limit for all schedules of a client together, in encoded form.
    static constexpr std::uint64_t max_total_bytes = 512 << 20;
    static constexpr std::size_t max_schedules = 1 << 16;

    // False: the client broke the rules; `problem` says how. A schedule that is merely invalid does not count
    // as that: `failure` is set for the log.
    bool add_part(const control::SchedulePart& part, std::string& problem, std::string& failure);
    bool forget(std::uint64_t id);
    // Null: never registered, not complete, or forgotten.
    StoredSchedule* find(std::uint64_t id);
    // A start is over.
    void release(StoredSchedule& schedule);

  private:
    std::unordered_map<std::uint64_t, std::unique_ptr<StoredSchedule>> schedules_;
    std::vector<std::unique_ptr<StoredSchedule>> forgotten_;
    std::uint64_t total_bytes_ = 0;
    std::uint64_t draft_id_ = 0;
    std::uint64_t draft_total_ = 0;
    std::vector<std::byte> draft_;
};

}  // namespace offpath::proxy
