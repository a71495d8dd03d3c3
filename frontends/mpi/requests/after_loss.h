// What becomes of an offloaded collective whose device was lost: its ranks agree (runtime/departure.h), and
// then it ends with its result, runs again (second_runs.h), or ends with an error.
//
// Threads: any; state_after_loss() under outstanding_mutex.
#pragma once

#include "offloaded_requests.h"

namespace offpath::mpi {

// The device's part of the operation has ended with `status`, and its team leaves the device.
void keep_back(OffloadedRequest& operation, offpath_status_t status);
void is_kept_back_no_longer(const OffloadedRequest& operation);

// What helps if some ranks have their result.
Repair repair_of(Op op);
inline Repair repair_of(const OffloadedRequest& operation) {
    return repair_of(operation.op);
}

// IN_PROGRESS, OK, or the error with which the operation ends, once its team leaves the device. Never blocks.
offpath_status_t state_after_loss(OffloadedRequest& operation);

// Ranks that do not know of a loss yet hear of it. Not under outstanding_mutex.
void report_losses();

// Whether the operation's device was lost, and may still write into its buffers.
bool device_may_write(const OffloadedRequest& operation);
// Makes an operation one whose device was lost before it has begun. Its part may run again.
void has_no_device(OffloadedRequest& operation);
// The same for one that goes to the host, by messages of the front end, with `lane` as its own.
void goes_to_host(OffloadedRequest& operation);
// Whether some collectives are kept back without a decision, or run again on all ranks. A run for which
// another rank has not called its part may last.
bool any_kept_back_for_now();
// Those for which there is no decision end with their result or an error, on this rank and on the others.
void give_up_kept_back();

}  // namespace offpath::mpi
