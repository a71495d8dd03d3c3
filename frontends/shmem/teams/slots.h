// Allocates the slots of teams (cells.h) and knows which of them this PE uses. The first half is for teams,
// the second for active sets.
//
// Threads: any.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "teams/cells.h"

namespace offpath::shmem {

struct Team;

inline constexpr int slot_count = 128;
inline constexpr int first_active_set_slot = 64;
using SlotSet = std::array<std::uint64_t, slot_count / 64>;

void open_slots();
Slot slot_at(int slot);

SlotSet slots_in_use();
// The lowest free slot for a team, or for an active set; -1: there is none.
int lowest_free(const SlotSet& used);
int lowest_free_for_active_set(const SlotSet& used);
// False: it is in use.
bool take_slot(int slot);
// Sets its words to zero again.
void free_slot(int slot);

Team* keep_active_set(std::vector<int> pes, int slot);

}  // namespace offpath::shmem
