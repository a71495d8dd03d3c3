#include "pending.h"

#include "core.h"
#include "device.h"
#include "device_loss.h"
#include "world.h"

namespace offpath::shmem {

namespace {

constexpr std::size_t most_entries = 256;
// Of all contexts, where the journal is on. With those in the journal they are fewer than there are marks.
constexpr std::size_t most_noted_entries = OFFPATH_MARKS_OUTSTANDING / 4;
std::size_t noted_entries = 0;

struct PutSlots {
    std::mutex mutex;
    std::vector<std::byte*> free;
};
PutSlots& put_slots() {
    static PutSlots instance;
    return instance;
}

std::unique_lock<std::mutex> lock_if_threads(std::mutex& mutex) {
    return world.threads ? std::unique_lock(mutex) : std::unique_lock<std::mutex>();
}

}  // namespace

std::unique_lock<std::mutex> Pending::lock() {
    return lock_if_threads(mutex_);
}

// False: a device was lost, and the job has recovered with everything done and this empty.
bool Pending::end(const Entry& entry) {
    const offpath_status_t status = offpath_request_wait(entry.request);
    if (status != OFFPATH_OK) [[unlikely]] {
        if (recovered(status)) return false;
        if (entry.to == nullptr || !goes_on_after(status)) fail_device(status, "what was started before");
        std::memcpy(entry.to, entry.from, entry.bytes);
    }
    (void)offpath_request_free(entry.request);
    if (entry.slot != nullptr) give_back_put_slot(entry.slot);
    return true;
}

void Pending::add(const Entry& entry) {
    const auto guard = lock();
    entries_.push_back(entry);
    count_entries();
}

bool Pending::has_room() {
    if (count_.load(std::memory_order_relaxed) < most_entries &&
        (!journal.on() || noted_entries < most_noted_entries))
        return true;
    const auto guard = lock();
    std::erase_if(entries_, [&](const Entry& entry) {
        const offpath_status_t status = offpath_request_test(entry.request);
        // The next wait recovers from an error.
        const bool over = status == OFFPATH_OK || (status != OFFPATH_IN_PROGRESS && !journal.on());
        if (over) (void)end(entry);
        return over;
    });
    count_entries();
    return entries_.size() < most_entries && noted_entries < most_noted_entries;
}

void Pending::wait() {
    const auto guard = lock();
    for (const Entry& entry : entries_)
        if (!end(entry)) return;
    entries_.clear();
    count_entries();
}

void Pending::take_unfinished(std::vector<Unfinished>& unfinished) {
    for (const Entry& entry : entries_) {
        if (offpath_request_test(entry.request) != OFFPATH_OK) unfinished.push_back(entry.unfinished);
        (void)offpath_request_free(entry.request);
        // Nothing uses it before the operation has been started again.
        if (entry.slot != nullptr) give_back_put_slot(entry.slot);
    }
    entries_.clear();
    count_entries();
}

void Pending::count_entries() {
    const std::size_t before = count_.exchange(entries_.size(), std::memory_order_acq_rel);
    if (journal.on()) noted_entries += entries_.size() - before;
}

void open_put_slots() {
    auto* const memory = static_cast<std::byte*>(internal_alloc(put_slot_bytes * put_slot_count));
    put_slots().free.clear();
    for (std::size_t i = put_slot_count; i > 0; --i)
        put_slots().free.push_back(memory + (i - 1) * put_slot_bytes);
}

std::byte* take_put_slot() {
    PutSlots& slots = put_slots();
    const auto guard = lock_if_threads(slots.mutex);
    if (slots.free.empty()) return nullptr;
    std::byte* const slot = slots.free.back();
    slots.free.pop_back();
    return slot;
}

void give_back_put_slot(std::byte* slot) {
    PutSlots& slots = put_slots();
    const auto guard = lock_if_threads(slots.mutex);
    slots.free.push_back(slot);
}

}  // namespace offpath::shmem
