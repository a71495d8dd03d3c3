// Locks of windows: the records of what this rank holds on either way, and the device's locks. The target's
// proxy owns a device's lock, and the lock is held when the call returns. Threads: any; the window's mutex
// guards the records.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <string>

#include "windows.h"

namespace offpath::mpi {

bool is_target(const Window& window, int rank);
// Whether this rank has a passive epoch to `target`, or with all_targets to any rank.
bool passive(Window& window, int target);
// This rank's epochs, on either way.
struct OpenEpochs {
    bool fence, access, exposure, lock_all, lock;
    // Whether one is open that must be ended by its own call: any except a fence's.
    bool to_be_ended() const { return access || exposure || lock_all || lock; }
    // Whether one is open that prevents a change of way: any except that of MPI_Win_lock_all.
    bool keeps_way() const { return fence || access || exposure || lock; }
};
OpenEpochs open_epochs(Window& window);
// Says that `call` may not come now, and why. Returns MPI_ERR_RMA_SYNC.
int out_of_turn(const char* call, const std::string& why);
// The same, since an epoch is open that must end before.
int before_the_end(Window& window, const char* call);
// In MPI_Win_fence, which opens an epoch or only ends one. False: another epoch forbids it.
bool begin_fence(Window& window, bool opens);

// The MPI calls, executed on the device. They call the error handler.
int lock_one(Window& window, int type, int rank, int assertion);
int lock_everybody(Window& window, int assertion);
int unlock(Window& window, int target);

// Records that the host's MPI has granted a lock, or is about to release one. `target` may be all_targets.
void note_lock(Window& window, int target, int assertion);
void forget_lock(Window& window, int target);

// The device's locks without the records. lock_device takes the lock of one target, or a shared lock at each;
// unlock_device releases those of ranks `first` to `last`.
offpath_status_t lock_device(Window& window, int type, int rank);
offpath_status_t lock_device(Window& window);
offpath_status_t unlock_device(Window& window, int first, int last);

}  // namespace offpath::mpi
