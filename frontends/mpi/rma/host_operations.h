// One-sided operations on the host's half of a window, from their description in bytes: for those that a lost
// device cannot execute (window_loss.h). Threads: one at a time for each window.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "one_sided_operation.h"

namespace offpath::mpi {

// Executes the operation in an epoch of this rank on `window.host`. With `waits`, it is done at the target
// when the call returns; else a flush of the target completes it, if its data need no packing. `skipped`: the
// first bytes of the operation, a whole number of elements, which are done already. Returns an MPI error.
int execute_by_host(Window& window, const OneSidedOperation& operation, bool waits,
                    std::uint64_t skipped = 0);

}  // namespace offpath::mpi
