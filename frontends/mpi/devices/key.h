// The key REMOTE_DEST_HETERO of communicators. Threads: as MPI_Comm_set_info.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace offpath::mpi::devices {

// Switches the communicator to devices or back to hosts if `info` has the key. An error is reported, and the
// communicator stays as it is. Local.
int take_key(MPI_Comm comm, MPI_Info info);

// What `info` says. A value that is not accepted is reported as an error of the call, as `error`.
enum class Key : std::uint8_t { none, off, on };
Key key_in(MPI_Info info, MPI_Comm comm, const char* call, int* error);

// The communicator's ranks in the world, which all have a device that takes part in MPI. Otherwise reports an
// error of the call, and returns it.
int ranks_with_devices(MPI_Comm comm, const char* call, std::vector<std::uint32_t>& ranks);

// Reports an error at a call: a line on standard error, and the communicator's error handler. Returns the
// error.
int raise(MPI_Comm comm, const char* call, int error, const char* what);

}  // namespace offpath::mpi::devices
