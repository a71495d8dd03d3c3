#include "offloaded_requests.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include "after_loss.h"
#include "base/clock.h"
#include "communicators/counters.h"
#include "communicators/words_under_way.h"
#include "held_calls.h"
#include "leaving_messages.h"
#include "outstanding.h"
#include "runtime/losses.h"
#include "runtime/parts.h"
#include "runtime/request_hash.h"
#include "runtime/runtime.h"

namespace offpath::mpi {
namespace {

constexpr std::size_t bucket_count = 256;
constexpr std::uint64_t complain_after_ns = 10'000'000'000;

// Guards the pool. MPICH calls on_free while it holds its own lock, so no thread may make an MPI call while
// it holds this mutex.
std::mutex pool_mutex;
std::vector<std::unique_ptr<OffloadedRequest>> all_operations;
OffloadedRequest* free_operations = nullptr;
// Guarded by outstanding_mutex.
std::array<OffloadedRequest*, bucket_count> by_handle{};
// While there are some, the time counts, from `busy_since_ns` on. Guarded likewise.
std::uint32_t listed = 0;
std::uint64_t busy_since_ns = 0, busy_ns = 0;
std::atomic<std::uint64_t> waited_ns{0};

// Lives while a thread waits for offloaded operations.
class Waiting {
  public:
    Waiting() : since_ns_(now_ns()) {}
    ~Waiting() { waited_ns.fetch_add(now_ns() - since_ns_, std::memory_order_relaxed); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

  private:
    std::uint64_t since_ns_;
};

// The time with operations outstanding, until now.
std::uint64_t outstanding_ns() {
    const std::lock_guard lock(outstanding_mutex);
    return busy_ns + (listed > 0 ? now_ns() - busy_since_ns : 0);
}

OffloadedRequest*& bucket_of(MPI_Request request) {
    return by_handle[hash_of(request) >> 56];
}

OffloadedRequest* find_outstanding(MPI_Request request) {
    OffloadedRequest* operation = bucket_of(request);
    while (operation != nullptr && operation->handle != request)
        operation = operation->hash_next;
    return operation;
}

void forget_handle(OffloadedRequest& operation) {
    OffloadedRequest** link = &bucket_of(operation.handle);
    while (*link != &operation)
        link = &(*link)->hash_next;
    *link = operation.hash_next;
}

void recycle(OffloadedRequest& operation) {
    release_staging(operation.send_staging);
    if (operation.fresh_staging == nullptr) {
        release_staging(operation.recv_staging);
    } else {
        operation.recv_staging = {};  // never used again
        operation.fresh_staging.reset();
    }
    for (const Piece& piece : operation.pieces) {
        if (piece.layout != nullptr) release(*piece.layout);
    }
    release(*operation.team);
    operation.pieces.clear();
    operation.host_parts.clear();
    operation.second_run.reset();
    operation.operands.clear();
    const std::lock_guard lock(pool_mutex);
    operation.next = free_operations;
    free_operations = &operation;
}

int on_query(void* state, MPI_Status* status) {
    const OffloadedRequest& operation = *static_cast<OffloadedRequest*>(state);
    const offpath_message_t& message = operation.message;
    const std::size_t bytes = operation.receives ? message.bytes : 0;
    PMPI_Status_set_elements_x(status, MPI_BYTE, static_cast<MPI_Count>(bytes));
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = operation.receives ? static_cast<int>(message.source) : MPI_UNDEFINED;
    status->MPI_TAG = operation.receives ? static_cast<int>(message.tag) : MPI_UNDEFINED;
    return operation.error;
}

// A record is free when both the host's MPI and finish() have released it. Open MPI calls on_free for a
// request that was freed early in MPI_Grequest_complete, MPICH in MPI_Request_free.
void let_go(OffloadedRequest& operation) {
    if (operation.holders.fetch_sub(1, std::memory_order_acq_rel) == 1) recycle(operation);
}

int on_free(void* state) {
    let_go(*static_cast<OffloadedRequest*>(state));
    return MPI_SUCCESS;
}

// A started collective cannot be cancelled; MPI allows a request to refuse. It must not refuse to cancel a
// receive.
int on_cancel(void* state, int) {
    const OffloadedRequest& operation = *static_cast<OffloadedRequest*>(state);
    if (!operation.receives || operation.done.load(std::memory_order_acquire)) return MPI_SUCCESS;
    warn(Code::not_supported,
         fmt::format("rank {}: MPI_Cancel: not supported for a receive from a device", runtime().rank));
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

// Of the device's part, which poll() reports if it has met a loss: IN_PROGRESS, OK, or the error with which
// it ended.
offpath_status_t state_on_device(OffloadedRequest& operation) {
    if (operation.number != 0 &&
        (operation.on_device != OFFPATH_IN_PROGRESS ||
         (any_loss.load(std::memory_order_relaxed) && operation.departure->has_reported())))
        return state_after_loss(operation);
    // A call that was held has no device request.
    const offpath_status_t status =
        operation.device != nullptr ? offpath_request_test(operation.device) : OFFPATH_OK;
    if (status != OFFPATH_ERR_PEER_LOST || operation.number == 0) return status;
    keep_back(operation, status);
    return state_after_loss(operation);
}

// Returns IN_PROGRESS, OK, or the error with which the operation ended.
offpath_status_t state_of(OffloadedRequest& operation) {
    if (operation.held.load(std::memory_order_acquire)) return OFFPATH_IN_PROGRESS;
    if (operation.lost) return OFFPATH_ERR_PEER_LOST;
    const offpath_status_t device = state_on_device(operation);
    if (device != OFFPATH_OK || operation.host_parts.empty()) return device;
    if (operation.host_failed) return OFFPATH_ERR_PEER_LOST;
    int done = 0;
    const int result = PMPI_Testall(static_cast<int>(operation.host_parts.size()),
                                    operation.host_parts.data(), &done, MPI_STATUSES_IGNORE);
    if (result != MPI_SUCCESS) return OFFPATH_ERR_PEER_LOST;
    return done != 0 ? OFFPATH_OK : OFFPATH_IN_PROGRESS;
}

bool unpack_pieces(const OffloadedRequest& operation) {
    const void* const base =
        operation.fresh_staging != nullptr ? operation.fresh_staging.get() : operation.recv_staging.address;
    const char* packed = static_cast<const char*>(base);
    for (const Piece& piece : operation.pieces) {
        const char* from = packed + piece.packed_at;
        if (piece.layout == nullptr) {
            std::memcpy(piece.elements, from, piece.count);
        } else if (!unpack(*piece.layout, from, piece.elements, piece.count)) {
            return false;
        }
    }
    return true;
}

// The operation is off the list, so no other thread touches it now.
void finish(OffloadedRequest& operation, offpath_status_t status) {
    if (operation.device != nullptr) {
        if (operation.kind->ended != nullptr) operation.kind->ended(operation);
        offpath_request_free(operation.device);
    }
    operation.device = nullptr;
    is_kept_back_no_longer(operation);
    if (status == OFFPATH_OK && operation.second_run != nullptr && !operation.on_host)
        count_second_run(*operation.team);
    if (status == OFFPATH_OK) keep_result(operation);
    if (status == OFFPATH_OK && !unpack_pieces(operation)) status = OFFPATH_ERR_TRUNCATED;
    if (status != OFFPATH_OK) {
        if (status != OFFPATH_ERR_PEER_LOST && operation.number != 0) operation.departure->has_failed();
        operation.error = operation.kind->fail(operation, status);
        if (!operation.host_parts.empty()) operation.team->small_messages.never_reuse_tag();
    }
    const MPI_Request handle = operation.handle;
    {
        const std::lock_guard lock(outstanding_mutex);
        forget_handle(operation);
        if (--listed == 0) busy_ns += now_ns() - busy_since_ns;
    }
    outstanding.requests.lower();
    operation.team->outstanding.fetch_sub(1, std::memory_order_relaxed);
    operation.done.store(true, std::memory_order_release);  // wait_until_done reads it
    PMPI_Grequest_complete(handle);
    let_go(operation);
}

// Returns the request that wakes a sleeping thread: the operation's device request while it is pending. In a
// program with several threads there is none, because another thread may finish the operation and free that
// request at any time.
offpath_request_h waking_device(const OffloadedRequest& operation) {
    if (runtime().threads || operation.device == nullptr) return nullptr;
    return offpath_request_test(operation.device) == OFFPATH_IN_PROGRESS ? operation.device : nullptr;
}

}  // namespace

OffloadedRequest& acquire_request(const RequestKind& kind, Team& team) {
    OffloadedRequest* operation = nullptr;
    {
        const std::lock_guard lock(pool_mutex);
        if (free_operations == nullptr) {
            all_operations.push_back(std::make_unique<OffloadedRequest>());
            free_operations = all_operations.back().get();
        }
        operation = free_operations;
        free_operations = operation->next;
    }
    operation->kind = &kind;
    operation->team = &team;
    operation->error = MPI_SUCCESS;
    operation->host_failed = operation->lost = operation->receives = operation->part_only = false;
    operation->persistent = operation->on_host = operation->fresh = false;
    operation->departure = team.departure.get();
    operation->number = 0;
    operation->on_device = OFFPATH_IN_PROGRESS;
    operation->held.store(false, std::memory_order_relaxed);
    operation->done.store(false, std::memory_order_relaxed);
    operation->holders.store(2, std::memory_order_relaxed);
    retain(team);
    return *operation;
}

void abandon(OffloadedRequest& operation) {
    is_kept_back_no_longer(operation);
    recycle(operation);
}

int publish(OffloadedRequest& operation, offpath_status_t status, MPI_Request* request) {
    if (status != OFFPATH_OK) {
        if (status != OFFPATH_ERR_PEER_LOST && operation.number != 0) operation.departure->has_failed();
        const int error = operation.kind->fail(operation, status);
        abandon(operation);
        return error;
    }
    // The request is counted before it becomes visible, so that no thread overlooks it.
    outstanding.requests.raise();
    operation.team->outstanding.fetch_add(1, std::memory_order_relaxed);
    PMPI_Grequest_start(on_query, on_free, on_cancel, &operation, &operation.handle);
    *request = operation.handle;
    const std::lock_guard lock(outstanding_mutex);
    OffloadedRequest*& bucket = bucket_of(operation.handle);
    operation.hash_next = bucket;
    bucket = &operation;
    operation.next = newest_outstanding;
    newest_outstanding = &operation;
    if (listed++ == 0) busy_since_ns = now_ns();
    return MPI_SUCCESS;
}

void poll() {
    poll_letters();
    if (undecided_departures.load(std::memory_order_relaxed) != 0) commit_departures();
    start_held_calls();
    if (words_under_way.load(std::memory_order_relaxed) != 0) advance_words_under_way();
    if (!any_outstanding()) return;
    finish_leaving_messages();
    report_losses();
    struct Ended {
        OffloadedRequest* operation;
        offpath_status_t status;
    };
    // Takes only a few at a time, because each is finished outside the lock.
    std::array<Ended, 16> ended;
    std::size_t count = 0;
    {
        const std::unique_lock lock(outstanding_mutex, std::try_to_lock);
        if (!lock.owns_lock()) return;
        for (OffloadedRequest** link = &newest_outstanding; *link != nullptr && count < ended.size();) {
            OffloadedRequest* operation = *link;
            const offpath_status_t status = state_of(*operation);
            if (status == OFFPATH_IN_PROGRESS) {
                link = &operation->next;
                continue;
            }
            *link = operation->next;
            ended[count++] = {operation, status};
        }
    }
    for (std::size_t i = 0; i < count; ++i)
        finish(*ended[i].operation, ended[i].status);
}

bool is_outstanding(MPI_Request request) {
    if (request == MPI_REQUEST_NULL) return false;
    const std::lock_guard lock(outstanding_mutex);
    return find_outstanding(request) != nullptr;
}

void wait_until_done(MPI_Request request) {
    if (request == MPI_REQUEST_NULL) return;
    const OffloadedRequest* operation = nullptr;
    {
        const std::lock_guard lock(outstanding_mutex);
        operation = find_outstanding(request);
    }
    if (operation == nullptr) return;
    const Waiting waiting;
    poll();
    for (Backoff backoff; !operation->done.load(std::memory_order_acquire); poll()) {
        progress_parts();
        backoff.pause(waking_device(*operation));
    }
}

void pause_for_any(Backoff& backoff) {
    const Waiting waiting;
    offpath_request_h device = nullptr;
    {
        const std::lock_guard lock(outstanding_mutex);
        if (newest_outstanding != nullptr) device = waking_device(*newest_outstanding);
    }
    backoff.pause(device);
}

std::span<const Counter> request_counters() {
    static const std::array<Counter, 2> all{{
        {"overlap_seconds",
         "time with offloaded collectives or requests outstanding in which this rank did not wait for them",
         Unit::nanoseconds,
         [] {
             const std::uint64_t waited = waited_ns.load(std::memory_order_relaxed), sum = outstanding_ns();
             return sum > waited ? sum - waited : 0;
         }},
        {"waiting_seconds", "time in which this rank waited for offloaded collectives or requests",
         Unit::nanoseconds, [] { return waited_ns.load(std::memory_order_relaxed); }},
    }};
    return all;
}

void finish_requests_of(const Team& team) {
    for (Backoff backoff; team.outstanding.load(std::memory_order_relaxed) != 0; pause_for_any(backoff)) {
        poll();
        progress_parts();
    }
}

void finish_all_requests() {
    Backoff backoff;
    bool complained = false;
    // What ranks must still answer each other ends once all have come here.
    const auto any_left = [] {
        return outstanding.requests > undecided_departures.load(std::memory_order_relaxed) +
                                          words_under_way.load(std::memory_order_relaxed);
    };
    for (poll(); any_left(); poll()) {
        progress_parts();
        backoff.pause();
        if (!complained && backoff.waited_ns() > complain_after_ns) {
            complained = true;
            const std::lock_guard lock(outstanding_mutex);
            if (newest_outstanding == nullptr) continue;
            warn(Code::unfinished,
                 fmt::format(
                     "rank {}: MPI_Finalize has waited 10 s for {} offloaded operations, one of them {} on a "
                     "communicator of {} ranks; has another rank not called it?",
                     runtime().rank, std::uint32_t{outstanding.requests},
                     newest_outstanding->kind->name(*newest_outstanding), newest_outstanding->team->size));
        }
    }
}

}  // namespace offpath::mpi
