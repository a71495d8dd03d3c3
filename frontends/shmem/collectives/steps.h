// What collectives are made of: messages into the members' slots, and looking at the slots of the own node.
#pragma once

#include <cstddef>
#include <cstdint>

#include "teams/team.h"
#include "waiting.h"

namespace offpath::shmem {

// The cell of an operation, and the number that its words get.
struct Cell {
    std::size_t index = 0;
    std::uint64_t number = 0;
};

// Begins the team's next operation. All members do, in the same order.
Cell next_cell(Team& team);

inline void publish(std::uint64_t* word, std::uint64_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
// Until the word has at least this value: words only grow.
inline void await(const std::uint64_t* word, std::uint64_t value) {
    wait_for([&] { return __atomic_load_n(word, __ATOMIC_ACQUIRE) >= value; });
}

// Sets a word of a member's slot, given by its place in the own one.
void tell(Team& team, int rank, std::uint64_t* own_word, std::uint64_t value);
// Copies into a member's slot, then sets a word there; both given by their places in the own one. `from` may
// be reused at return.
void send(Team& team, int rank, void* own_place, const void* from, std::size_t bytes, std::uint64_t* own_word,
          std::uint64_t value);

inline const Slot& slot_of(const Team& team, int rank) {
    return team.near[static_cast<std::size_t>(team.place_of[static_cast<std::size_t>(rank)])];
}
inline bool is_near(const Team& team, int rank) {
    return team.group_of[static_cast<std::size_t>(rank)] == team.group();
}
// The member of a group that speaks for it.
inline int leader_of(const Team& team, int group) {
    return team.groups[static_cast<std::size_t>(group)].front();
}
// The member of a group that has to do with the PE at this place of another group.
inline int counterpart(const Team& team, int group, int place) {
    const std::vector<int>& members = team.groups[static_cast<std::size_t>(group)];
    return members[static_cast<std::size_t>(place) % members.size()];
}

// The rest of [0, count) that part `i` of `parts` has, in elements; boundaries at whole cache lines.
struct Part {
    std::size_t begin = 0, end = 0;
    std::size_t size() const { return end - begin; }
};
Part part_of(std::size_t count, std::size_t element, std::size_t i, std::size_t parts);

// Ends the job unless this is symmetric memory.
void check_symmetric(const char* what, const void* address, std::size_t bytes);

}  // namespace offpath::shmem
