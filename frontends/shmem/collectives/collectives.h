// The collectives, on teams; active sets are teams too. `dest` and `source` are symmetric, blocks in bytes.
//
// Small ones pass through the members' cells (teams/cells.h): data and a word that says so, one step away for
// members of the same node, trees and exchanges between the leaders of nodes. Large ones begin with a sync,
// after which every member may read each source and write each dest, move data from place to place, split
// over the PEs of each node, and end with a sync. So no call needs that the caller has synchronised before it
// but for what the standard says, and one may follow the other at once.
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

// All members have come. Their stores before it are visible after it.
void sync_team(Team& team);
// The same after quiet() on the default context.
void barrier(Team& team);
void barrier_all();

// Whether the root's own dest gets the data.
enum class Root : std::uint8_t { receives, keeps };
void broadcast(Team& team, void* dest, const void* source, std::size_t bytes, int root, Root kind);

// Blocks of all members in their order; of one size, or of each member's own.
void fcollect(Team& team, void* dest, const void* source, std::size_t bytes);
void collect(Team& team, void* dest, const void* source, std::size_t bytes);

// Block i of `source` goes to member i; block i of `dest` comes from there. The strided form counts in
// elements.
void alltoall(Team& team, void* dest, const void* source, std::size_t bytes);
void alltoalls(Team& team, void* dest, const void* source, std::ptrdiff_t dest_stride,
               std::ptrdiff_t source_stride, std::size_t element, std::size_t count);

void reduce(Team& team, void* dest, const void* source, std::size_t count, const Reducer& reducer);
// For the library itself: what fits into a cell, and need not be symmetric.
void combine_small(Team& team, void* dest, const void* source, std::size_t count, const Reducer& reducer);

}  // namespace offpath::shmem
