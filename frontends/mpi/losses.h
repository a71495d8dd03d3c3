// Losses: what this process knows of ranks and devices that are gone, and what follows from that.
//
// A device serves one node, so with it the ranks of that node can be reached by the host's MPI only. Messages
// between a rank and those of a lost node leave the device at each end by itself: a receive takes either
// form. Collectives leave it together: communicators and windows that are made when one of their ranks knows
// of a loss are the host's, and an existing communicator becomes the host's at the next agreement
// (tuning/agreement.h) after one of its ranks has met the loss there, or by the votes of its ranks
// (tuning/votes.h).
//
// Threads: any. Nothing here costs anything before the first loss.
#pragma once

#include <offpath/types.h>

#include <atomic>

namespace offpath::mpi {

struct Team;

inline std::atomic<bool> any_loss{false};

// An operation with `world_rank` has ended with PEER_LOST.
void lost_rank(int world_rank);
// The own device takes nothing any more.
void lost_own_device();
// An operation of the team has ended with `status`.
void lost_on_team(const Team& team, offpath_status_t status);

// Whether messages to `world_rank` are the host's.
bool is_lost(int world_rank);
// Whether an operation of the team has met a loss.
bool met_loss(const Team& team);
// The team is no more.
void forget_losses(const Team& team);

}  // namespace offpath::mpi
