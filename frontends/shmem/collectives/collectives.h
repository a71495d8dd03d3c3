// The collectives, on teams; active sets are teams too. `dest` and `source` are symmetric; sizes of blocks
// are in bytes.
//
// Small ones pass through the members' cells (teams/cells.h), each with data and a word that announces them.
// Members of a node read each other's cells; the leaders of the nodes use trees and exchanges. Large ones
// begin with a sync, after which every member may read each source and write each dest. They move the data
// directly, split over the PEs of each node, and end with a sync. A caller therefore need not synchronise
// before a call, except where the standard says so, and calls may follow each other at once.
//
// Every member computes a reduction in the same order, so all get the same bits.
//
// Threads: one at a time for each team.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/reducers.h"
#include "teams/team.h"

namespace offpath::shmem {

// Returns when all members have arrived. Their earlier stores are visible then.
void sync_team(Team& team);
// The same, after quiet() on the default context.
void barrier(Team& team);
void barrier_all();

// Whether the root's own dest gets the data.
enum class Root : std::uint8_t { receives, keeps };
void broadcast(Team& team, void* dest, const void* source, std::size_t bytes, int root, Root kind);

// Concatenate the blocks of all members in their order; blocks of one size, or each member's own size.
void fcollect(Team& team, void* dest, const void* source, std::size_t bytes);
void collect(Team& team, void* dest, const void* source, std::size_t bytes);

// Block i of `source` goes to member i; block i of `dest` comes from member i. Sizes of the strided form are
// in elements.
void alltoall(Team& team, void* dest, const void* source, std::size_t bytes);
void alltoalls(Team& team, void* dest, const void* source, std::ptrdiff_t dest_stride,
               std::ptrdiff_t source_stride, std::size_t element, std::size_t count);

void reduce(Team& team, void* dest, const void* source, std::size_t count, const Reducer& reducer);
// The library itself calls this. The data must fit into a cell, and need not be symmetric.
void combine_small(Team& team, void* dest, const void* source, std::size_t count, const Reducer& reducer);

}  // namespace offpath::shmem
