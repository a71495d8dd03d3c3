// Info objects that regions make. Threads: calls on one object must not overlap.
#pragma once

#include <mpi.h>

#include <map>
#include <optional>
#include <string>

namespace offpath::region_mpi {

using Info = std::map<std::string, std::string, std::less<>>;

// The key REMOTE_DEST_HETERO; nothing: it is not there. Throws MpiError: MPI_ERR_INFO, MPI_ERR_INFO_VALUE.
std::optional<bool> key_in(MPI_Info handle);

}  // namespace offpath::region_mpi
