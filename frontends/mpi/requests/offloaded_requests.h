// Outstanding operations: offloaded collectives behind the user's MPI requests.
//
// Each is a generalized request of the host's MPI, so all of MPI's request calls work on it. The intercepted
// request calls run poll(), which asks the device (one load per operation), unpacks packed data and completes
// the generalized request. Records are pooled, so posting again allocates nothing here.
//
// After a loss, the ranks of a communicator agree on what becomes of its collectives of the device
// (runtime/departure.h). Meanwhile poll() keeps back those that have ended there. Afterwards they end with
// their result or an error, or run again on the host's MPI (second_runs.h).
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
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "communicators/communicators.h"
#include "datatypes/datatypes.h"
#include "device_part.h"
#include "runtime/backoff.h"
#include "runtime/counter.h"
#include "runtime/outstanding_counts.h"
#include "runtime/selection.h"
#include "runtime/staging.h"
#include "second_runs.h"

namespace offpath::mpi {

// A part of a receive buffer that is unpacked at completion.
struct Piece {
    void* elements;
    std::size_t count;      // bytes where there is no layout
    std::size_t packed_at;  // offset in the staging block
    Layout* layout;         // held; null: plain bytes
};

struct OffloadedRequest;

// What sets the requests of one kind apart. Each kind is one constant of the room that makes such requests.
struct RequestKind {
    // The program's call, for messages.
    std::string (*name)(const OffloadedRequest& request);
    // The request has ended with this error, or could not be started: reports it, calls the program's error
    // handler, and returns what the MPI call returns.
    int (*fail)(const OffloadedRequest& request, offpath_status_t status);
    // The device's request has ended and is about to be freed. Null: nothing is to be done.
    void (*ended)(OffloadedRequest& request) = nullptr;
};

struct OffloadedRequest {
    const RequestKind* kind = nullptr;
    Op op = Op::ialltoall;          // of a collective
    const char* call = nullptr;     // of a one-sided call: its name
    MPI_Win window = MPI_WIN_NULL;  // likewise
    bool outlives = false;          // likewise: it was lost, and is done all the same
    Team* team = nullptr;
    offpath_request_h device = nullptr;
    MPI_Request handle = MPI_REQUEST_NULL;
    int error = MPI_SUCCESS;
    std::atomic<bool> done{false};
    std::atomic<int> holders{0};  // the host's MPI, until it frees the request, and the end of the operation

    bool receives = false;      // of a receive from a device: `message` is its status
    offpath_message_t message;  // the source as the program's rank

    StagingBlock send_staging, recv_staging;
    std::vector<Piece> pieces;
    std::vector<MPI_Request> host_parts;  // messages of pairs of ranks that decided against the device
    bool host_failed = false;             // one of them could not be started
    std::atomic<bool> held{false};        // not started until its ranks have agreed (held_calls.h)
    bool lost = false;                    // it was held, and ends with the error of a lost device
    std::vector<std::size_t> send_bytes, send_offsets, recv_bytes, recv_offsets;
    std::vector<int> send_peers, recv_peers;  // of a collective among neighbours

    // How a collective leaves a lost device: with its team, or, if it is persistent, by itself.
    Departure* departure = nullptr;
    std::shared_ptr<Departure> own_departure;  // keeps it; may be an earlier operation's
    SmallLane lane;                            // of a persistent one
    bool persistent = false;
    bool on_host = false;  // persistent: its start is the host's, and never was on the device
    bool fresh = false;    // the device was never told of it, so it has touched nothing

    // Of a collective that may run again.
    std::uint64_t number = 0;  // of its departure; 0: it may not
    bool part_only = false;    // the device is not told: only `part` is wanted
    DevicePart part;
    std::vector<std::byte> operands;  // a copy, of a short reduction in place (second_runs.h)
    // How it has ended on the device, once its team leaves the device. Until then, in progress.
    offpath_status_t on_device = OFFPATH_IN_PROGRESS;
    std::uint64_t ended_ns = 0;  // when
    std::unique_ptr<SecondRun> second_run;
    // What a second run receives into, in place of `recv_staging`, which a stopped device may still write.
    std::unique_ptr<std::byte[]> fresh_staging;

    OffloadedRequest* next = nullptr;       // outstanding, or free in the pool
    OffloadedRequest* hash_next = nullptr;  // by handle, until done
};

OffloadedRequest& acquire_request(const RequestKind& kind, Team& team);
void abandon(OffloadedRequest& operation);

// Finishes posting `operation`; `status` is that of its start on the device. Makes the user's request, or
// reports the error through the communicator's error handler. Returns what the MPI call returns.
int publish(OffloadedRequest& operation, offpath_status_t status, MPI_Request* request);

// Ends operations that are done, answers letters, and starts held calls. Never blocks.
void poll();

inline bool any_outstanding() {
    return outstanding.requests != 0;
}

// Collectives that have ended on the device, and are kept back or run again.
inline std::atomic<std::uint32_t> kept_back{0};

// Whether `request` is an offloaded operation that is not done.
bool is_outstanding(MPI_Request request);

// Returns at once for other requests. Otherwise it returns when the operation is done, and progresses the
// host's MPI meanwhile.
void wait_until_done(MPI_Request request);

// One step of a wait for the first of several operations.
void pause_for_any(Backoff& backoff);

// Called in MPI_Comm_disconnect, which waits for pending operations.
void finish_requests_of(const Team& team);
// Called in MPI_Finalize.
void finish_all_requests();

// The time with operations outstanding, and the part of it that this rank waited for them.
std::span<const Counter> request_counters();

}  // namespace offpath::mpi
