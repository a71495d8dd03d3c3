#include "teams/slots.h"

#include <bit>
#include <cstring>
#include <mutex>

#include "core.h"

namespace offpath::shmem {

namespace {

struct Slots {
    std::byte* memory = nullptr;
    SlotSet used{};
    std::mutex mutex;
};
Slots slots;

std::uint64_t bit(int slot) {
    return std::uint64_t{1} << (slot % 64);
}

}  // namespace

void open_slots() {
    slots.memory = static_cast<std::byte*>(internal_alloc(slot_count * slot_layout.bytes()));
}

Slot slot_at(int slot) {
    return Slot{slots.memory + static_cast<std::size_t>(slot) * slot_layout.bytes()};
}

SlotSet slots_in_use() {
    const std::lock_guard lock(slots.mutex);
    return slots.used;
}

int lowest_free(const SlotSet& used) {
    static_assert(first_active_set_slot == 64 && slot_count == 128);
    return used[0] == UINT64_MAX ? -1 : std::countr_one(used[0]);
}

int lowest_free_for_active_set(const SlotSet& used) {
    return used[1] == UINT64_MAX ? -1 : first_active_set_slot + std::countr_one(used[1]);
}

bool take_slot(int slot) {
    const std::lock_guard lock(slots.mutex);
    std::uint64_t& word = slots.used[static_cast<std::size_t>(slot / 64)];
    if ((word & bit(slot)) != 0) return false;
    word |= bit(slot);
    return true;
}

void free_slot(int slot) {
    std::memset(slot_at(slot).base, 0, slot_layout.words_bytes());
    const std::lock_guard lock(slots.mutex);
    slots.used[static_cast<std::size_t>(slot / 64)] &= ~bit(slot);
}

}  // namespace offpath::shmem
