// Teams: ordered sets of PEs with what their collectives need.
//
// A team has a slot: symmetric memory of the library at the same offset on all its members, which is zero but
// for its data areas while nobody uses it. Slots are numbered; the members of a new team agree on a number
// that is free at all PEs of the parent. What the members write into each other's slots is described in
// cells.h.
//
// The PEs of a node are a group. Members of a group see each other's slots; groups talk through the device.
//
// Threads: a team's collectives come from one thread at a time, as the standard says; making and ending teams
// is guarded here.
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
    std::uint32_t mark = alive_mark;       // 0 after the end
    int rank = 0, size = 0;                // no members: nothing happens
    std::vector<int> pes;                  // world PE of each member
    std::vector<int> group_of;             // of each member
    std::vector<int> place_of;             // of each member: its index in its group
    std::vector<std::vector<int>> groups;  // members in ascending order; groups by their first members
    int contexts = 0;                      // num_contexts of its configuration
    std::uint64_t handle = 0;              // what shmem_team_t holds

    int slot = -1;  // -1: a team of one
    Slot own;
    std::vector<Slot> near;  // of the own group's members, by place
    std::uint64_t syncs = 0, operations = 0;
    Context* context = nullptr;  // the team's own, with its numbers

    int group() const { return group_of[static_cast<std::size_t>(rank)]; }
    int place() const { return place_of[static_cast<std::size_t>(rank)]; }
    const std::vector<int>& mine() const { return groups[static_cast<std::size_t>(group())]; }
    bool leads() const { return place() == 0; }
    int group_count() const { return static_cast<int>(groups.size()); }
    // Of a world PE; -1: no member.
    int rank_of(int pe) const;
};

// From the end of start() until stop().
void open_teams();
void close_teams();

Team& world_team();
Team& shared_team();

// The team behind a handle; null for SHMEM_TEAM_INVALID. Ends the job for a team that was destroyed.
Team* find_team(void* handle);
// Of a collective: ends the job for SHMEM_TEAM_INVALID too.
Team& team_of(void* handle);

// The PEs start, start + 2^log_stride, ... as a team, made at its first use. Collective over them.
Team& active_set(int start, int log_stride, int size, long* sync);

// Makes a new team of those of the parent's members that `members` names, for each PE that is among them;
// null for others. Collective over the parent: several disjoint teams may come of one call. `good`: whether
// this PE's arguments are. False on all members where it cannot be done.
bool split(Team& parent, const std::vector<int>& members, bool good, int contexts, Team*& made);
// Collective over the team. The team's handle is dead afterwards.
void destroy(Team& team);

}  // namespace offpath::shmem
