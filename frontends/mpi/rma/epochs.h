// Puts and gets of a window that is on the host's way: each passive epoch's go by the host's MPI or by the
// device, whichever was measured to be faster for their size (epoch_trial.h). One rank may do so alone, since
// puts and gets are not ordered before a flush, and a flush here completes both kinds. Updates are atomic to
// each other and locks exclude each other only on one way, so those keep to the window's.
//
// The device serves them only while the target's lock is held. Open MPI's MPI_Win_lock returns before it is,
// so the first epoch under each lock is the host's; when that has been flushed, the lock is held.
//
// An epoch is what lies between two flushes or unlocks. What was learnt is kept for later windows.
//
// Threads: one at a time, as for all windows with two ways.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include "windows.h"

namespace offpath::mpi {

enum class Moved : std::uint8_t { put, get };

// The way of a put or a get to `rank`, of `count` elements of `type`.
Way way_of(Window& window, Moved kind, int rank, int count, MPI_Datatype type);

// Before a call that completes what goes to `target` by the host's MPI: the device's part of it, if any. An
// MPI error, not raised.
int complete_device_part(Window& window, int target);
// After such a call: the end of an epoch, whose operations are compared.
void end_epoch(Window& window, int target);
// A lock begins or ends.
void forget_grant(Window& window, int target);

}  // namespace offpath::mpi
