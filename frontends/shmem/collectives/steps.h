// Parts of which collectives are made: messages into the members' slots, and waits on the slots of this node.
#pragma once

#include <cstddef>
#include <cstdint>

#include "teams/team.h"
#include "waiting.h"

namespace offpath::shmem {

// The cell of an operation, and the number that the operation writes into words.
struct Cell {
    std::size_t index = 0;
    std::uint64_t number = 0;
};

// Begins the team's next operation. All members call it in the same order.
Cell next_cell(Team& team);

inline void publish(std::uint64_t* word, std::uint64_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
// Waits until the word has at least this value; words only grow.
inline void await(const std::uint64_t* word, std::uint64_t value) {
    wait_for([&] { return __atomic_load_n(word, __ATOMIC_ACQUIRE) >= value; });
}

// Sets a word of a member's slot; `own_word` is the same word in this PE's slot.
void tell(Team& team, int rank, std::uint64_t* own_word, std::uint64_t value);
// Copies into a member's slot, then sets a word there. Both are given by their places in this PE's slot. The
// caller may reuse `from` on return.
void send(Team& team, int rank, void* own_place, const void* from, std::size_t bytes, std::uint64_t* own_word,
          std::uint64_t value);

inline const Slot& slot_of(const Team& team, int rank) {
    return team.near[static_cast<std::size_t>(team.place_of[static_cast<std::size_t>(rank)])];
}
inline bool is_near(const Team& team, int rank) {
    return team.group_of[static_cast<std::size_t>(rank)] == team.group();
}
// The member that acts for a group.
inline int leader_of(const Team& team, int group) {
    return team.groups[static_cast<std::size_t>(group)].front();
}
// The member of a group that exchanges with the PE at this place of another group.
inline int counterpart(const Team& team, int group, int place) {
    const std::vector<int>& members = team.groups[static_cast<std::size_t>(group)];
    return members[static_cast<std::size_t>(place) % members.size()];
}

// Part `i` of `parts` of [0, count), in elements. Boundaries are at whole cache lines.
struct Part {
    std::size_t begin = 0, end = 0;
    std::size_t size() const { return end - begin; }
};
Part part_of(std::size_t count, std::size_t element, std::size_t i, std::size_t parts);

// Ends the job if this is not symmetric memory.
void check_symmetric(const char* what, const void* address, std::size_t bytes);

}  // namespace offpath::shmem
