// Puts and gets of a window on the host's way. Those of each passive epoch use the host's MPI or the device,
// whichever measured faster for their size (ways/epoch_trial.h). One rank may decide this alone, because puts
// and gets are not ordered before a flush, and a flush here completes both kinds. Updates and locks stay on
// the window's way: updates are atomic to each other, and locks exclude each other, only on one way.
//
// The device serves puts and gets only while the target's lock is held. Open MPI's MPI_Win_lock returns
// before it holds the lock. The first epoch under each lock therefore uses the host's MPI; once it has been
// flushed, the lock is held.
//
// An epoch lies between two flushes or unlocks. Results are kept for later windows.
//
// Threads: one at a time, as for all windows with two ways.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include "windows.h"

namespace offpath::mpi {

// The way of a put or a get to `rank`, of `count` elements of `type`.
Way way_of(Window& window, Moved kind, int rank, int count, MPI_Datatype type);

// Call it before a call that completes the operations to `target` in the host's MPI. It completes the
// device's part of them, if any. Returns an MPI error, which it does not raise.
int complete_device_part(Window& window, int target);
// Call it after such a call: ends an epoch and records its sample.
inline void end_epoch(Window& window, int target);
// A lock begins or ends.
void forget_grant(Window& window, int target);

// Only for end_epoch.
void record_epoch(Window& window);
void note_grants(Window& window, int target);

inline void end_epoch(Window& window, int target) {
    if (window.epoch.trial != nullptr) record_epoch(window);
    window.epoch.operations = 0;
    if (window.asks) note_grants(window, target);
}

}  // namespace offpath::mpi
