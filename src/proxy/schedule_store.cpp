#include "proxy/schedule_store.h"

#include "schedule/wire.h"

#include <fmt/format.h>

#include <algorithm>

namespace offpath::proxy {

bool ScheduleStore::add_part(const control::SchedulePart& part, std::string& problem, std::string& failure) {
    if (part.offset == 0) {
        if (!draft_.empty() || schedules_.contains(part.schedule)) {
            problem = fmt::format("schedule {} is registered twice, or inside another one", part.schedule);
            return false;
        }
        if (schedules_.size() >= max_schedules || total_bytes_ + part.total > max_total_bytes) {
            problem =
                fmt::format("too many schedules: {} with {} bytes; at most {} with {} bytes are accepted",
                            schedules_.size() + 1, total_bytes_ + part.total, max_schedules, max_total_bytes);
            return false;
        }
        draft_id_ = part.schedule;
        draft_total_ = part.total;
    }
    if (part.schedule != draft_id_ || part.offset != draft_.size() || part.total != draft_total_) {
        problem = fmt::format("part at {} of schedule {} where {} of schedule {} was due", part.offset,
                              part.schedule, draft_.size(), draft_id_);
        return false;
    }
    draft_.insert(draft_.end(), part.bytes.begin(), part.bytes.end());
    if (draft_.size() < part.total) return true;

    auto stored = std::make_unique<StoredSchedule>();
    stored->encoded_bytes = part.total;
    schedule::Schedule decoded;
    stored->failure = schedule::decode(draft_, decoded, failure);
    draft_.clear();
    if (stored->failure == Status::ok) {
        stored->plan = std::make_unique<engine::Plan>(std::move(decoded));
        for (const schedule::Slot& slot : stored->plan->schedule().slots()) {
            if (slot.kind == schedule::SlotKind::user) stored->slot_bytes.push_back(slot.bytes);
        }
    }
    total_bytes_ += stored->encoded_bytes;
    schedules_.emplace(part.schedule, std::move(stored));
    return true;
}

bool ScheduleStore::forget(std::uint64_t id) {
    const auto found = schedules_.find(id);
    if (found == schedules_.end()) return false;
    total_bytes_ -= found->second->encoded_bytes;
    found->second->forgotten = true;
    if (found->second->running > 0) forgotten_.push_back(std::move(found->second));
    schedules_.erase(found);
    return true;
}

StoredSchedule* ScheduleStore::find(std::uint64_t id) {
    const auto found = schedules_.find(id);
    return found == schedules_.end() ? nullptr : found->second.get();
}

void ScheduleStore::release(StoredSchedule& schedule) {
    if (--schedule.running > 0 || !schedule.forgotten) return;
    std::erase_if(forgotten_, [&](const auto& owned) { return owned.get() == &schedule; });
}

}  // namespace offpath::proxy
