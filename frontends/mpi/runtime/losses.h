// Losses: what this process knows about lost ranks and devices, and the consequences.
//
// A device serves one node. Once it is lost, only the host's MPI reaches the ranks of that node. Messages to
// or from them leave the device at each end separately, because a receive accepts either form. Collectives
// must leave it together. A communicator or window that is made after one of its ranks knows of a loss uses
// the host's MPI. An existing communicator changes to the host's MPI at a collective on which its ranks agree
// (departure.h), an existing window by itself (rma/window_loss.h) or where all its ranks meet
// (rma/host_or_device.h).
//
// Threads: any. Nothing here costs anything before the first loss.
#pragma once

#include <offpath/types.h>

#include <atomic>
#include <span>

#include "counter.h"

namespace offpath::mpi {

struct Team;

inline std::atomic<bool> any_loss{false};

// An operation with `world_rank` has ended with PEER_LOST.
void lost_rank(int world_rank);
// This process's own device accepts nothing any more.
void lost_own_device();
// An operation of the team has ended with `status`.
void lost_on_team(const Team& team, offpath_status_t status);

// Whether messages to `world_rank` are the host's.
bool is_lost(int world_rank);
// Whether an operation of the team has met a loss.
bool met_loss(const Team& team);
// The team has ended.
void forget_losses(const Team& team);

// The devices whose loss this process knows of.
std::span<const Counter> loss_counters();

}  // namespace offpath::mpi
