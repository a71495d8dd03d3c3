// Locks of windows: what this rank holds, on either way, and the locks of the device. A device's lock is the
// target's proxy's, and is held when the call returns. Threads: any; the window's mutex guards the records.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include "windows.h"

namespace offpath::mpi {

bool is_target(const Window& window, int rank);
// Whether this rank has a passive epoch to `target`, or with all_targets to anybody.
bool passive(Window& window, int target);
// This rank's epochs, of either way.
struct OpenEpochs {
    bool fence, access, exposure, lock_all, lock;
    // One that a call of its own ends: any but a fence's.
    bool to_be_ended() const { return access || exposure || lock_all || lock; }
    // One during which the window cannot change its way: any but that of MPI_Win_lock_all.
    bool keeps_way() const { return fence || access || exposure || lock; }
};
OpenEpochs open_epochs(Window& window);

// The MPI calls on the device; they call the error handler.
int lock_one(Window& window, int type, int rank, int assertion);
int lock_everybody(Window& window, int assertion);
int unlock(Window& window, int target);

// The host's MPI has granted a lock; it is to end one. `target` may be all_targets.
void note_lock(Window& window, int target, int assertion);
void forget_lock(Window& window, int target);

// The device's locks without the records: a shared one at each target; those of ranks from `first` to `last`.
offpath_status_t lock_device(Window& window);
offpath_status_t unlock_device(Window& window, int first, int last);

}  // namespace offpath::mpi
