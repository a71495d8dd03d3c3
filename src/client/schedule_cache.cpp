#include "client/schedule_cache.h"

#include "base/log.h"
#include "client/context.h"
#include "schedule/wire.h"

#include <algorithm>

namespace offpath::client {
namespace {

std::uint64_t hash_of(std::span<const std::uint64_t> key) {
    std::uint64_t hash = 0x9e3779b97f4a7c15;
    for (std::uint64_t word : key) {
        hash ^= word;
        hash *= 0xff51afd7ed558ccd;
        hash ^= hash >> 32;
    }
    return hash;
}

}  // namespace

const RegisteredSchedule* ScheduleCache::find(std::span<const std::uint64_t> key) {
    const auto [first, last] = by_hash_.equal_range(hash_of(key));
    for (auto at = first; at != last; ++at) {
        if (!std::ranges::equal(at->second->key, key)) continue;
        recent_.splice(recent_.begin(), recent_, at->second);
        return &recent_.front();
    }
    return nullptr;
}

const RegisteredSchedule* ScheduleCache::insert(std::span<const std::uint64_t> key,
                                                const schedule::Schedule& schedule, Status& status) {
    RegisteredSchedule registered;
    status = add(schedule, registered);
    if (status != Status::ok) return nullptr;
    registered.key.assign(key.begin(), key.end());
    bytes_ += registered.encoded_bytes;
    recent_.push_front(std::move(registered));
    by_hash_.emplace(hash_of(key), recent_.begin());
    evict();
    return &recent_.front();
}

void ScheduleCache::evict() {
    while (recent_.size() > 1 && (recent_.size() > max_schedules || bytes_ > max_bytes)) {
        const auto oldest = std::prev(recent_.end());
        const auto [first, last] = by_hash_.equal_range(hash_of(oldest->key));
        by_hash_.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == oldest; }));
        bytes_ -= oldest->encoded_bytes;
        forget(*oldest);
        recent_.erase(oldest);
    }
}

Status ScheduleCache::add(const schedule::Schedule& schedule, RegisteredSchedule& registered) {
    const std::vector<std::byte> encoded = schedule::encode(schedule);
    if (encoded.size() > control::max_schedule_bytes || schedule.slots().size() > control::max_buffers) {
        log::error(Code::limit, "a schedule of {} bytes and {} buffers is too large; {} and {} are accepted",
                   encoded.size(), schedule.slots().size(), control::max_schedule_bytes,
                   control::max_buffers);
        return Status::unsupported;
    }
    registered.id = next_id_++;
    registered.encoded_bytes = encoded.size();
    registered.bytes_sent = schedule.bytes_sent();
    const std::vector<bool> whole = schedule.slots_used_whole();
    for (std::size_t i = 0; i < schedule.slots().size(); ++i) {
        const schedule::Slot& slot = schedule.slots()[i];
        if (slot.kind != schedule::SlotKind::user) continue;
        registered.slot_bytes.push_back(slot.bytes);
        registered.whole.push_back(whole[i]);
    }
    if (const schedule::OpId op = schedule.shared_copy(); op != schedule::Schedule::npos) {
        const auto among_users = [&](schedule::BufferRef place) {
            const auto before = schedule.slots().first(place.slot);
            place.slot = static_cast<std::uint32_t>(
                std::ranges::count(before, schedule::SlotKind::user, &schedule::Slot::kind));
            return place;
        };
        const schedule::Op& copy = schedule.ops()[op];
        registered.shared_from = among_users(copy.src);
        registered.shared_to = among_users(copy.dst);
        registered.shared_bytes = copy.bytes;
    }
    for (std::size_t offset = 0; offset < encoded.size(); offset += control::max_part_bytes) {
        control::SchedulePart part;
        part.schedule = registered.id;
        part.total = encoded.size();
        part.offset = offset;
        part.bytes =
            std::span(encoded).subspan(offset, std::min(control::max_part_bytes, encoded.size() - offset));
        if (Status status = context_.post(part); status != Status::ok) return status;
    }
    return Status::ok;
}

void ScheduleCache::forget(const RegisteredSchedule& registered) {
    // A proxy that is gone has already forgotten the schedule.
    (void)context_.post(control::ForgetSchedule{registered.id});
}

}  // namespace offpath::client
