// Windows of hosts and devices. MPI_Win_create makes one if the info has the key REMOTE_DEST_HETERO, whatever
// its value, on all hosts of the communicator and in regions on all of their devices. The hosts and the
// devices of the same ranks meet in the order in which they make such windows. Creation, fences and the end
// are collective over both. The key's value, which MPI_Win_set_info changes, says which end of a rank is the
// target of operations and locks.
//
// Ownership: the MPI_Win, as other windows. Threads: as the MPI calls.
#pragma once

#include <mpi.h>

#include "windows.h"

namespace offpath::mpi {

// False: the info does not have the key. Otherwise the window has been made, or an error was reported, which
// is `result`.
bool made_mixed(const Window::Traits& traits, MPI_Info info, MPI_Comm comm, MPI_Win* win, int& result);
// Whether the info has the key, at a call that cannot make such a window: reports an error.
bool refuses_key(const char* call, MPI_Info info, MPI_Comm comm, int& result);

int fence_mixed(Window& window);
// Reports that the call does not work on such a window.
int not_mixed(const Window& window, const char* call);

}  // namespace offpath::mpi
