#include "offloaded_requests.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include "base/clock.h"
#include "base/lost_device.h"
#include "base/patience.h"
#include "communicators/counters.h"
#include "held_calls.h"
#include "runtime/losses.h"
#include "runtime/parts.h"
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
// Guards the list of outstanding operations and the table by handle.
std::mutex outstanding_mutex;
OffloadedRequest* newest = nullptr;
std::array<OffloadedRequest*, bucket_count> by_handle{};

// MPI_Request is a pointer in some MPI libraries and an integer in others.
OffloadedRequest*& bucket_of(MPI_Request request) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &request, sizeof(MPI_Request));  // NOLINT(bugprone-sizeof-expression)
    return by_handle[(bits * 0x9E3779B97F4A7C15U) >> 56];
}

OffloadedRequest* find(MPI_Request request) {
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

// The device's part has ended, and its team leaves the device.
void keep_back(OffloadedRequest& operation, offpath_status_t status) {
    operation.on_device = status;
    operation.ended_ns = now_ns();
    kept_back.fetch_add(1, std::memory_order_relaxed);
}

void is_kept_back_no_longer(const OffloadedRequest& operation) {
    if (operation.on_device != OFFPATH_IN_PROGRESS) kept_back.fetch_sub(1, std::memory_order_relaxed);
}

// How long a collective waits for a decision, or for messages of its second run. A device that hangs was
// noticed late, so the rest must be quick.
std::uint64_t patience_ns() {
    const std::uint64_t limit_ns = lost_after_ns();
    return lost_device::may_still_write() ? limit_ns / 5 : limit_ns;
}

// Whether an earlier collective of the team is to run again first.
bool must_follow(const OffloadedRequest& operation) {
    for (const OffloadedRequest* other = newest; other != nullptr; other = other->next)
        if (other->departure == operation.departure && other->number != 0 &&
            other->number < operation.number &&
            other->departure->passage_of(other->number, is_direct(other->op)) == Passage::again)
            return true;
    return false;
}

// Whether the device reaches this memory without system calls.
bool is_mapped(const void* address) {
    offpath_back_end_t back_end{};
    offpath_progress_t progress{};
    return address != nullptr &&
           (offpath_mem_query(runtime().context, address, 1, &back_end, &progress) != OFFPATH_OK ||
            back_end == OFFPATH_BACK_END_MAP || back_end == OFFPATH_BACK_END_XGVMI);
}

bool receives_into_staging(const OffloadedRequest& operation) {
    return operation.recv_staging.address != nullptr && operation.part.recv == operation.recv_staging.address;
}

// Whether a message of a pair of ranks may be taken for that of a start which was given up, where this rank
// has then sent and received nothing.
bool may_mix_messages(const OffloadedRequest& operation) {
    return traits(operation.op).each_pair_decides() && operation.departure->has_given_up();
}

// Whether the device's part moves nothing, or only blocks of this rank to itself.
bool concerns_no_other_rank(const OffloadedRequest& operation) {
    const int self = operation.team->rank;
    const auto has_others = [&](const std::vector<std::size_t>& bytes, const std::vector<int>& peers) {
        for (std::size_t i = 0; i < bytes.size(); ++i)
            if (bytes[i] != 0 && (peers.empty() ? static_cast<int>(i) : peers[i]) != self) return true;
        return false;
    };
    const bool by_pairs = operation.part.shape == DevicePart::Shape::pairs;
    return (by_pairs || operation.part.shape == DevicePart::Shape::neighbors) &&
           !has_others(operation.send_bytes, by_pairs ? std::vector<int>{} : operation.send_peers) &&
           !has_others(operation.recv_bytes, by_pairs ? std::vector<int>{} : operation.recv_peers);
}

// Throws std::bad_alloc.
void leave_staging_to_device(OffloadedRequest& operation) {
    const std::size_t bytes = operation.recv_staging.bytes;
    operation.fresh_staging = std::make_unique<std::byte[]>(bytes);
    std::memcpy(operation.fresh_staging.get(), operation.recv_staging.address, bytes);
    operation.part.recv = operation.fresh_staging.get();
}

// A rank that does not come holds the others up no longer than the limit.
offpath_status_t run_again(OffloadedRequest& operation) {
    if (operation.second_run == nullptr) {
        if (must_follow(operation)) return OFFPATH_IN_PROGRESS;
        try {
            if (receives_into_staging(operation) && lost_device::may_still_write() &&
                is_mapped(operation.recv_staging.address))
                leave_staging_to_device(operation);
            operation.second_run = std::make_unique<SecondRun>(operation);
        } catch (const std::bad_alloc&) {
            operation.departure->give_up(operation.number);
            return OFFPATH_ERR_PEER_LOST;
        }
    }
    const offpath_status_t status = operation.second_run->progress();
    const bool in_vain =
        status == OFFPATH_IN_PROGRESS && now_ns() - operation.second_run->moved_ns() > patience_ns();
    if (status != OFFPATH_ERR_PEER_LOST && !in_vain) return status;
    operation.departure->give_up(operation.number);
    return OFFPATH_ERR_PEER_LOST;
}

// A start of a persistent collective that is the host's. It waits for the other ranks as long as they take,
// as a collective of the host's MPI does.
offpath_status_t run_on_host(OffloadedRequest& operation) {
    if (operation.second_run == nullptr) {
        try {
            goes_to_host(operation);
            if (!can_run_again(operation)) return OFFPATH_ERR_PEER_LOST;
            operation.second_run = std::make_unique<SecondRun>(operation);
        } catch (const std::bad_alloc&) {
            return OFFPATH_ERR_PEER_LOST;
        }
    }
    return operation.second_run->progress();
}

// Where the ranks need not agree.
offpath_status_t run_alone(OffloadedRequest& operation) {
    try {
        if (operation.second_run == nullptr) operation.second_run = std::make_unique<SecondRun>(operation);
    } catch (const std::bad_alloc&) {
        return OFFPATH_ERR_PEER_LOST;
    }
    return operation.second_run->progress();
}

// The same as state_of() for the device's part, once the team leaves the device.
offpath_status_t state_after_loss(OffloadedRequest& operation) {
    if (operation.on_device == OFFPATH_IN_PROGRESS) {
        const offpath_status_t status =
            operation.device != nullptr ? offpath_request_test(operation.device) : OFFPATH_ERR_PEER_LOST;
        if (status == OFFPATH_IN_PROGRESS) return status;
        keep_back(operation, status);
    }
    // Other errors have nothing to do with a loss.
    if (operation.on_device != OFFPATH_OK && operation.on_device != OFFPATH_ERR_PEER_LOST)
        return operation.on_device;
    Departure& departure = *operation.departure;
    Passage passage = departure.passage_of(operation.number, is_direct(operation.op));
    if (passage == Passage::device) return departure.is_closed() ? operation.on_device : OFFPATH_IN_PROGRESS;
    if (passage == Passage::undecided) {
        if (now_ns() - operation.ended_ns < patience_ns()) return OFFPATH_IN_PROGRESS;
        departure.give_up(operation.number);
        passage = Passage::lost;
    }
    if (passage == Passage::host) return run_on_host(operation);
    if (passage == Passage::again && !may_mix_messages(operation)) return run_again(operation);
    // A barrier needs no more than that. A rank that has left it needs no second run.
    if (operation.part.shape == DevicePart::Shape::barrier && departure.all_have_started(operation.number))
        return OFFPATH_OK;
    if (operation.on_device != OFFPATH_OK && concerns_no_other_rank(operation) && can_run_again(operation) &&
        !device_may_write(operation))
        return run_alone(operation);
    if (operation.second_run == nullptr) return operation.on_device;
    operation.second_run.reset();  // it may have overwritten a part of the device's result
    return OFFPATH_ERR_PEER_LOST;
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
    operation.next = newest;
    newest = &operation;
    return MPI_SUCCESS;
}

namespace {

// Ranks that do not know of a loss hear of it, without the lock.
void report_losses() {
    if (kept_back.load(std::memory_order_relaxed) == 0) return;
    struct Met {
        Team* team;
        Departure* departure;
        std::shared_ptr<Departure> kept;
    };
    std::vector<Met> met;
    {
        const std::lock_guard lock(outstanding_mutex);
        for (const OffloadedRequest* one = newest; one != nullptr; one = one->next) {
            if (one->on_device != OFFPATH_ERR_PEER_LOST || one->departure->has_reported()) continue;
            retain(*one->team);
            met.push_back({one->team, one->departure, one->persistent ? one->own_departure : nullptr});
        }
    }
    for (const Met& one : met) {
        lost_on_team(*one.team, OFFPATH_ERR_PEER_LOST);
        one.departure->report();
        release(*one.team);
    }
}

}  // namespace

void has_no_device(OffloadedRequest& operation) {
    operation.part_only = operation.fresh = true;
    keep_back(operation, OFFPATH_ERR_PEER_LOST);
}

void goes_to_host(OffloadedRequest& operation) {
    operation.on_host = true;
    operation.lane = operation.lane.after_loss();
}

bool device_may_write(const OffloadedRequest& operation) {
    if (!lost_device::may_still_write()) return false;
    return lost_device::may_still_call() ||
           (is_mapped(operation.part.recv) && !receives_into_staging(operation));
}

// What a daemon that has died was doing is over in a moment. One that was only stopped may continue later.
bool find_vote(const Departure& departure, std::uint64_t calls, std::uint64_t given_up, Vote& vote) {
    constexpr std::uint64_t while_dying_ns = 1'000'000'000;
    const std::unique_lock lock(outstanding_mutex, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    vote = {calls, 0, 0, 0, false};
    const auto is_asked_for = [&](const OffloadedRequest& one) {
        return one.number > given_up && one.number <= calls && one.departure == &departure;
    };
    const bool may_be_dying = lost_device::may_still_call();
    for (const OffloadedRequest* one = newest; one != nullptr; one = one->next) {
        if (!is_asked_for(*one)) continue;
        const bool held = one->held.load(std::memory_order_acquire);
        if (!held && one->on_device == OFFPATH_IN_PROGRESS) return false;
        if (!held && may_be_dying && now_ns() - one->ended_ns < while_dying_ns) return false;
        if (vote.first == 0 || one->number < vote.first) vote.first = one->number;
    }
    for (const OffloadedRequest* one = newest; one != nullptr; one = one->next) {
        if (!is_asked_for(*one) || one->number - vote.first >= 64) continue;
        const bool held = one->held.load(std::memory_order_acquire);
        if (held || (can_run_again(*one) && (one->fresh || !device_may_write(*one))))
            vote.intact |= 1ULL << (one->number - vote.first);
        vote.outstanding |= 1ULL << (one->number - vote.first);
    }
    // Another thread may have started one that is not in the list yet.
    vote.complete = !runtime().threads;
    return true;
}

bool any_kept_back_for_now() {
    if (kept_back.load(std::memory_order_relaxed) == 0) return false;
    const std::lock_guard lock(outstanding_mutex);
    for (const OffloadedRequest* one = newest; one != nullptr; one = one->next) {
        if (one->on_device == OFFPATH_IN_PROGRESS) continue;
        const Passage passage = one->departure->passage_of(one->number, is_direct(one->op));
        if (passage == Passage::host) continue;
        if (passage != Passage::again || one->departure->all_have_started(one->number)) return true;
    }
    return false;
}

void give_up_kept_back() {
    const std::lock_guard lock(outstanding_mutex);
    for (const OffloadedRequest* one = newest; one != nullptr; one = one->next)
        if (one->on_device != OFFPATH_IN_PROGRESS &&
            one->departure->passage_of(one->number, is_direct(one->op)) == Passage::undecided)
            one->departure->give_up(one->number);
}

void poll() {
    poll_letters();
    if (undecided_departures.load(std::memory_order_relaxed) != 0) commit_departures();
    start_held_calls();
    if (!any_outstanding()) return;
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
        for (OffloadedRequest** link = &newest; *link != nullptr && count < ended.size();) {
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
    return find(request) != nullptr;
}

void wait_until_done(MPI_Request request) {
    if (request == MPI_REQUEST_NULL) return;
    const OffloadedRequest* operation = nullptr;
    {
        const std::lock_guard lock(outstanding_mutex);
        operation = find(request);
    }
    if (operation == nullptr) return;
    poll();
    for (Backoff backoff; !operation->done.load(std::memory_order_acquire); poll()) {
        progress_parts();
        backoff.pause(waking_device(*operation));
    }
}

void pause_for_any(Backoff& backoff) {
    offpath_request_h device = nullptr;
    {
        const std::lock_guard lock(outstanding_mutex);
        if (newest != nullptr) device = waking_device(*newest);
    }
    backoff.pause(device);
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
    // Ranks that are undecided about a communicator answer each other until all have come here.
    const auto any_left = [] {
        return outstanding.requests > undecided_departures.load(std::memory_order_relaxed);
    };
    for (poll(); any_left(); poll()) {
        progress_parts();
        backoff.pause();
        if (!complained && backoff.waited_ns() > complain_after_ns) {
            complained = true;
            const std::lock_guard lock(outstanding_mutex);
            if (newest == nullptr) continue;
            warn(Code::unfinished,
                 fmt::format(
                     "rank {}: MPI_Finalize has waited 10 s for {} offloaded operations, one of them {} on a "
                     "communicator of {} ranks; has another rank not called it?",
                     runtime().rank, std::uint32_t{outstanding.requests}, newest->kind->name(*newest),
                     newest->team->size));
        }
    }
}

}  // namespace offpath::mpi
