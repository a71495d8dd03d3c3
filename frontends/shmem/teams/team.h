// Teams: ordered sets of PEs with what their collectives need.
//
// A team has a slot: symmetric memory of the library at the same offset on all its members. While no team
// uses a slot, all of it except the data areas is zero. Slots are numbered; the members of a new team agree
// on a number that is free at all PEs of the parent. cells.h describes what the members write into each
// other's slots.
//
// The PEs of a node are a group. Members of a group map each other's slots; groups communicate through the
// device.
//
// Threads: one thread at a time calls a team's collectives, as the standard demands. A lock guards making and
// destroying teams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core.h"
#include "teams/cells.h"

namespace offpath::shmem {

struct Team {
    static constexpr std::uint32_t alive_mark = 0x7ea37ea3;
    std::uint32_t mark = alive_mark;  // 0: the team has been destroyed
    int rank = 0, size = 0;           // size 0: no members, and calls do nothing
    std::vector<int> pes;             // world PE of each member
    std::vector<int> group_of;        // by member
    std::vector<int> place_of;        // by member: its index in its group
    // Members in ascending order; groups ordered by their first members.
    std::vector<std::vector<int>> groups;
    int contexts = 0;          // the num_contexts of its configuration
    std::uint64_t handle = 0;  // what shmem_team_t holds

    int slot = -1;  // -1: a team of one has none
    Slot own;
    std::vector<Slot> near;  // of the members of this PE's group, by place
    std::uint64_t syncs = 0, operations = 0;
    Context* context = nullptr;  // the team's own context, with its PE numbers

    int group() const { return group_of[static_cast<std::size_t>(rank)]; }
    int place() const { return place_of[static_cast<std::size_t>(rank)]; }
    const std::vector<int>& mine() const { return groups[static_cast<std::size_t>(group())]; }
    bool leads() const { return place() == 0; }
    int group_count() const { return static_cast<int>(groups.size()); }
    // The rank of a world PE; -1: not a member.
    int rank_of(int pe) const;
};

// Used from the end of start() until stop().
void open_teams();
void close_teams();

Team& world_team();
Team& shared_team();

// The team of a handle; null for SHMEM_TEAM_INVALID. Ends the job if the team was destroyed.
Team* find_team(void* handle);
// Collectives call this. It ends the job for SHMEM_TEAM_INVALID too.
Team& team_of(void* handle);

// The PEs start, start + 2^log_stride, ... as a team, which is made at first use. Collective over them.
Team& active_set(int start, int log_stride, int size, long* sync);

// Makes a new team of the parent's members that `members` names, on each PE that is among them; null on
// others. Collective over the parent; one call may make several disjoint teams. `good`: whether this PE's
// arguments are valid. False on all members if the team cannot be made.
bool split(Team& parent, const std::vector<int>& members, bool good, int contexts, Team*& made);
// Collective over the team. Its handle is invalid afterwards.
void destroy(Team& team);

}  // namespace offpath::shmem
