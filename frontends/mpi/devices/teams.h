// Mixed teams (runtime/mixed_teams.h) on this host. Threads: any.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <cstdint>
#include <vector>

namespace offpath::mpi::devices {

// The ranks of a communicator in the world. Empty: a member is not part of it.
std::vector<std::uint32_t> world_ranks(MPI_Comm comm);

// The team that carries messages of these ranks, until the end of the job. Null: the device refuses.
offpath_team_h team_for(const std::vector<std::uint32_t>& ranks);
// A team of the same ranks for a window. The hosts and the devices make such teams in the same order. The
// caller destroys it. Null: the device refuses.
offpath_team_h new_team_for(const std::vector<std::uint32_t>& ranks);

}  // namespace offpath::mpi::devices
