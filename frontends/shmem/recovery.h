// A job between nodes that loses a device goes on with the device's successor. Every PE that notices the loss
// comes here from the call that it is in. It ends its session, so that no device touches its memory any more,
// and waits for all others. Then all attach again, and share the same symmetric memory with their devices.
// Each PE reads what the old devices have marked as applied at its targets, and starts its other unfinished
// operations once more, in their order, each behind the one before. Operations between PEs of a node are
// loads and stores and go on all the time.
//
// A job cannot do this with remote devices, with SHMEM_THREAD_MULTIPLE, without a launcher's data store, or
// with more than 256 PEs. Threads: one.
#pragma once

#include "journal.h"

#include <offpath/types.h>

namespace offpath::shmem {

inline constexpr int most_recovering_pes = 256;

// Whether `status` may come from a loss. A PE that has ended its session before this one has noticed anything
// has no window. The addresses of the program are checked before they come to a device.
bool is_loss(offpath_status_t status);
// Whether this PE could.
bool can_recover();
// At the start, when the window is there, if all PEs can. Collective.
void open_recovery();
void close_recovery();
// The job starts again, and its symmetric memory is gone.
void drop_recovery();

// After `status` of a device's operation: attaches again if a device is lost and the job can. True:
// everything that this process had started is done, and `world` has the new device.
bool recovered(offpath_status_t status);
// The same at the end of the job, where others may have left already: it waits for them for a short time
// only, and a false answer is no error.
bool recovered_at_end(offpath_status_t status);

}  // namespace offpath::shmem
