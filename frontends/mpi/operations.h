// Outstanding operations: offloaded collectives behind the user's MPI requests.
//
// Each is a generalized request of the host's MPI, so all of MPI's request calls work on it. The intercepted
// request calls run poll(), which asks the device (one load per operation), unpacks packed data and completes
// the generalized request. Records are pooled, so posting again allocates nothing here.
//
// Life of a record: acquire -> fill -> publish (or abandon) -> finished by poll -> recycled when the host's
// MPI has freed the request. A thread that waits for a request may read its record until that wait returns.
// Threads: poll, publish and the waits from any; an unpublished record belongs to its maker.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backoff.h"
#include "communicators.h"
#include "datatypes.h"
#include "selection.h"
#include "staging.h"

namespace offpath::mpi {

// A part of a receive buffer that is unpacked at completion.
struct Piece {
    void* elements;
    std::size_t count;      // bytes where there is no layout
    std::size_t packed_at;  // offset in the staging block
    Layout* layout;         // held; null: plain bytes
};

struct Operation {
    Op op = Op::ialltoall;
    const char* call = nullptr;  // the user's call, if it is no collective
    Team* team = nullptr;
    offpath_request_h device = nullptr;
    MPI_Request handle = MPI_REQUEST_NULL;
    MPI_Win window = MPI_WIN_NULL;  // for one-sided calls: its error handler is called
    int error = MPI_SUCCESS;
    std::atomic<bool> done{false};
    std::atomic<int> holders{0};  // the host's MPI, until it frees the request, and the end of the operation

    StagingBlock send_staging, recv_staging;
    std::vector<Piece> pieces;
    std::vector<MPI_Request> host_parts;  // messages of pairs of ranks that decided against the device
    bool host_failed = false;             // one of them could not be started
    std::vector<std::size_t> send_bytes, send_offsets, recv_bytes, recv_offsets;

    Operation* next = nullptr;       // outstanding, or free in the pool
    Operation* hash_next = nullptr;  // by handle, until done
};

Operation& acquire_operation(Op op, Team& team);
void abandon(Operation& operation);

// Calls `start` until the device has room, and returns its status.
void poll();
template <typename Start>
offpath_status_t start_on_device(Start start) {
    offpath_status_t status = start();
    for (Backoff backoff; status == OFFPATH_RETRY; status = start()) {
        poll();
        backoff.pause();
    }
    return status;
}

// Finishes posting `operation`; `status` is that of its start on the device. Makes the user's request, or
// reports the error through the communicator's error handler. Returns what the MPI call returns.
int publish(Operation& operation, offpath_status_t status, MPI_Request* request);

inline std::atomic<std::uint64_t> operations_under_way{0};
inline bool any_under_way() {
    return operations_under_way.load(std::memory_order_relaxed) != 0;
}

// Whether `request` is an offloaded operation that is not done.
bool is_under_way(MPI_Request request);

// Returns at once for other requests. Otherwise it returns when the operation is done, and progresses the
// host's MPI meanwhile.
void wait_until_done(MPI_Request request);

// One step of a wait for the first of several operations.
void pause_for_any(Backoff& backoff);

// Called in MPI_Comm_disconnect, which waits for pending operations.
void finish_operations_of(const Team& team);
// Called in MPI_Finalize.
void finish_all_operations();

}  // namespace offpath::mpi
