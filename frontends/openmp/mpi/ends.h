// Where a message goes and where it comes from, as a member of a team: a device or a host. The key
// REMOTE_DEST_HETERO of the communicator decides. Without it, a region sends to devices; with it, it sends to
// hosts and receives from hosts. Threads: any. The functions throw MpiError for arguments that are wrong.
#pragma once

#include "openmp/mpi/communicators.h"

namespace offpath::region_mpi {

struct Destination {
    offpath_team_h team = nullptr;
    std::uint32_t member = 0;
};
Destination destination_of(const Communicator& communicator, int rank);

struct Sources {
    offpath_team_h team = nullptr;
    std::uint32_t member = 0, mask = 0;  // of offpath_recv_masked
    bool mixed = false;                  // of a mixed team
};
// `rank` may be MPI_ANY_SOURCE.
Sources sources_of(const Communicator& communicator, int rank);

std::uint32_t checked_tag(int tag);
// `tag` may be MPI_ANY_TAG.
std::uint32_t tag_to_match(int tag);

}  // namespace offpath::region_mpi
