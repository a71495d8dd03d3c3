#include "operations.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>
#include <mutex>

#include "losses.h"
#include "p2p/state.h"
#include "rma/windows.h"
#include "runtime.h"

namespace offpath::mpi {
namespace {

constexpr std::size_t bucket_count = 256;
constexpr std::uint64_t complain_after_ns = 10'000'000'000;

// Guards the pool. MPICH calls on_free while it holds its own lock, so nothing calls MPI under this one.
std::mutex pool_mutex;
std::vector<std::unique_ptr<Operation>> all_operations;
Operation* free_operations = nullptr;
// Guards the list of operations under way and the table by handle.
std::mutex mutex;
Operation* under_way = nullptr;
std::array<Operation*, bucket_count> by_handle{};

// MPI_Request is a pointer in some MPI libraries and an integer in others.
Operation*& bucket_of(MPI_Request request) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &request, sizeof(MPI_Request));  // NOLINT(bugprone-sizeof-expression)
    return by_handle[(bits * 0x9E3779B97F4A7C15U) >> 56];
}

Operation* find(MPI_Request request) {
    Operation* operation = bucket_of(request);
    while (operation != nullptr && operation->handle != request)
        operation = operation->hash_next;
    return operation;
}

void forget_handle(Operation& operation) {
    Operation** link = &bucket_of(operation.handle);
    while (*link != &operation)
        link = &(*link)->hash_next;
    *link = operation.hash_next;
}

void recycle(Operation& operation) {
    release_staging(operation.send_staging);
    release_staging(operation.recv_staging);
    for (const Piece& piece : operation.pieces) {
        if (piece.layout != nullptr) release(*piece.layout);
    }
    release(*operation.team);
    operation.pieces.clear();
    operation.host_parts.clear();
    const std::lock_guard lock(pool_mutex);
    operation.next = free_operations;
    free_operations = &operation;
}

int on_query(void* state, MPI_Status* status) {
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return static_cast<Operation*>(state)->error;
}

// A record is free when the host's MPI has let go of the request and finish() has as well. Open MPI calls
// on_free for a request that was freed early in MPI_Grequest_complete, MPICH in MPI_Request_free.
void let_go(Operation& operation) {
    if (operation.holders.fetch_sub(1, std::memory_order_acq_rel) == 1) recycle(operation);
}

int on_free(void* state) {
    let_go(*static_cast<Operation*>(state));
    return MPI_SUCCESS;
}

// A collective that was started cannot be cancelled; MPI lets a request refuse.
int on_cancel(void*, int) {
    return MPI_SUCCESS;
}

std::string name_of(const Operation& operation) {
    return operation.call != nullptr ? operation.call : call_name(operation.op);
}

// Says what failed, calls the error handler of the window or the communicator, which by default ends the job,
// and returns the error.
int report_failure(const Operation& operation, offpath_status_t status) {
    lost_on_team(*operation.team, status);
    if (operation.window != MPI_WIN_NULL) {
        const int error = error_of(status);
        PMPI_Win_call_errhandler(operation.window, error);
        return error;
    }
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    const MPI_Comm comm = operation.team->comm;
    if (comm != MPI_COMM_NULL) PMPI_Comm_get_name(comm, name, &length);
    say(fmt::format("rank {}: {} on {} ({} ranks) failed: {}", runtime().rank, name_of(operation),
                    length > 0 ? name : "an unnamed communicator", operation.team->size,
                    offpath_status_string(status)));
    PMPI_Comm_call_errhandler(comm != MPI_COMM_NULL ? comm : MPI_COMM_WORLD, MPI_ERR_OTHER);
    return MPI_ERR_OTHER;
}

// IN_PROGRESS, OK, or the error with which the operation ended.
offpath_status_t state_of(Operation& operation) {
    const offpath_status_t device = offpath_request_test(operation.device);
    if (device != OFFPATH_OK || operation.host_parts.empty()) return device;
    if (operation.host_failed) return OFFPATH_ERR_PEER_LOST;
    int done = 0;
    const int result = PMPI_Testall(static_cast<int>(operation.host_parts.size()),
                                    operation.host_parts.data(), &done, MPI_STATUSES_IGNORE);
    if (result != MPI_SUCCESS) return OFFPATH_ERR_PEER_LOST;
    return done != 0 ? OFFPATH_OK : OFFPATH_IN_PROGRESS;
}

bool unpack_pieces(const Operation& operation) {
    const char* packed = static_cast<const char*>(operation.recv_staging.address);
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

// Nobody else touches the operation now: it is off the list.
void finish(Operation& operation, offpath_status_t status) {
    offpath_request_free(operation.device);
    operation.device = nullptr;
    if (status == OFFPATH_OK && !unpack_pieces(operation)) status = OFFPATH_ERR_TRUNCATED;
    if (status != OFFPATH_OK) {
        operation.error = report_failure(operation, status);
        if (!operation.host_parts.empty()) operation.team->small_messages.never_reuse_tag();
    }
    const MPI_Request handle = operation.handle;
    {
        const std::lock_guard lock(mutex);
        forget_handle(operation);
    }
    operations_under_way.fetch_sub(1, std::memory_order_relaxed);
    operation.team->under_way.fetch_sub(1, std::memory_order_relaxed);
    operation.done.store(true, std::memory_order_release);  // read by wait_until_done
    PMPI_Grequest_complete(handle);
    let_go(operation);
}

// What a sleeper waits on: the operation's device request as long as it is pending. With several threads
// another one may finish the operation and give that request back at any time, so there is none then.
offpath_request_h waking_device(const Operation& operation) {
    if (runtime().threads || operation.device == nullptr) return nullptr;
    return offpath_request_test(operation.device) == OFFPATH_IN_PROGRESS ? operation.device : nullptr;
}

}  // namespace

Operation& acquire_operation(Op op, Team& team) {
    Operation* operation = nullptr;
    {
        const std::lock_guard lock(pool_mutex);
        if (free_operations == nullptr) {
            all_operations.push_back(std::make_unique<Operation>());
            free_operations = all_operations.back().get();
        }
        operation = free_operations;
        free_operations = operation->next;
    }
    operation->op = op;
    operation->call = nullptr;
    operation->team = &team;
    operation->window = MPI_WIN_NULL;
    operation->error = MPI_SUCCESS;
    operation->host_failed = false;
    operation->done.store(false, std::memory_order_relaxed);
    operation->holders.store(2, std::memory_order_relaxed);
    retain(team);
    return *operation;
}

void abandon(Operation& operation) {
    recycle(operation);
}

int publish(Operation& operation, offpath_status_t status, MPI_Request* request) {
    if (status != OFFPATH_OK) {
        const int error = report_failure(operation, status);
        abandon(operation);
        return error;
    }
    // Counted before it can be seen, so that no thread overlooks it.
    operations_under_way.fetch_add(1, std::memory_order_relaxed);
    operation.team->under_way.fetch_add(1, std::memory_order_relaxed);
    PMPI_Grequest_start(on_query, on_free, on_cancel, &operation, &operation.handle);
    *request = operation.handle;
    const std::lock_guard lock(mutex);
    Operation*& bucket = bucket_of(operation.handle);
    operation.hash_next = bucket;
    bucket = &operation;
    operation.next = under_way;
    under_way = &operation;
    return MPI_SUCCESS;
}

void poll() {
    if (!any_under_way()) return;
    struct Ended {
        Operation* operation;
        offpath_status_t status;
    };
    // A few at a time: each is finished outside the lock.
    std::array<Ended, 16> ended;
    std::size_t count = 0;
    {
        const std::unique_lock lock(mutex, std::try_to_lock);
        if (!lock.owns_lock()) return;
        for (Operation** link = &under_way; *link != nullptr && count < ended.size();) {
            Operation* operation = *link;
            const offpath_status_t status = state_of(*operation);
            if (status == OFFPATH_IN_PROGRESS || status == OFFPATH_RETRY) {
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

bool is_under_way(MPI_Request request) {
    if (request == MPI_REQUEST_NULL) return false;
    const std::lock_guard lock(mutex);
    return find(request) != nullptr;
}

void wait_until_done(MPI_Request request) {
    if (request == MPI_REQUEST_NULL) return;
    const Operation* operation = nullptr;
    {
        const std::lock_guard lock(mutex);
        operation = find(request);
    }
    if (operation == nullptr) return;
    poll();
    for (Backoff backoff; !operation->done.load(std::memory_order_acquire); poll()) {
        p2p::poll();
        backoff.pause(waking_device(*operation));
    }
}

void pause_for_any(Backoff& backoff) {
    offpath_request_h device = nullptr;
    {
        const std::lock_guard lock(mutex);
        if (under_way != nullptr) device = waking_device(*under_way);
    }
    backoff.pause(device);
}

void finish_operations_of(const Team& team) {
    for (Backoff backoff; team.under_way.load(std::memory_order_relaxed) != 0; pause_for_any(backoff)) {
        poll();
        p2p::poll();
    }
}

void finish_all_operations() {
    Backoff backoff;
    bool complained = false;
    for (poll(); any_under_way(); poll()) {
        p2p::poll();
        backoff.pause();
        if (!complained && backoff.waited_ns() > complain_after_ns) {
            complained = true;
            const std::lock_guard lock(mutex);
            if (under_way == nullptr) continue;
            say(fmt::format(
                "rank {}: MPI_Finalize has waited 10 s for {} offloaded operations, one of them {} on a "
                "communicator of {} ranks; has another rank not called it?",
                runtime().rank, operations_under_way.load(), name_of(*under_way), under_way->team->size));
        }
    }
}

}  // namespace offpath::mpi
