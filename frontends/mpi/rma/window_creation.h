// Creation and end of windows: the agreement of the ranks, and the counts for the summary. Internal to this
// folder.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "windows.h"

namespace offpath::mpi {

int window_keyval();
// A communicator of ours with the ranks of the team's. Null: the host's MPI has no more of them on some rank,
// or another thread makes one right now. Collective over the team. May throw NoAgreement.
MPI_Comm communicator_like(Team& team);
// The window uses the device for the first time.
void count_on_device(Window& window);
// Windows led by this rank: those that were on the device, and those that the host's MPI served.
// A window of hosts and devices has been made; on one rank of it.
void count_made();
std::uint64_t windows_made();
std::uint64_t windows_left();
// "2 within one node"
std::string why_windows_left();

}  // namespace offpath::mpi
