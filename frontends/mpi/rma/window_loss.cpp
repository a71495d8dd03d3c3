#include "window_loss.h"

#include <fmt/format.h>
#include <offpath/loss.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "base/clock.h"
#include "host_operations.h"
#include "runtime/backoff.h"
#include "runtime/losses.h"
#include "runtime/runtime.h"
#include "window_locks.h"

namespace offpath::mpi {
namespace {

using Closed = Ledger::Closed;
using Holds = Ledger::Holds;
using Unfinished = WindowLoss::Unfinished;

// How long a device that lives may take to notice the loss of another one.
constexpr std::uint64_t notice_ns = 1'500'000'000;

std::atomic<std::uint64_t> again{0};

std::string name_of_window(const Window& window) {
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    PMPI_Win_get_name(window.handle, name, &length);
    return fmt::format("{} of {} ranks", length > 0 ? name : "a window", window.size);
}

// Says why a loss cannot be outlived.
offpath_status_t give_up(const Window& window, const std::string& what) {
    warn(Code::operation, fmt::format("rank {}: {}: {}", window.rank, name_of_window(window), what));
    return OFFPATH_ERR_PEER_LOST;
}

bool updates(const OneSidedOperation& operation) {
    return operation.kind != OneSidedOperation::Kind::put && operation.kind != OneSidedOperation::Kind::get;
}

bool fetches(const OneSidedOperation& operation) {
    return operation.result.elements.shape != nullptr;
}

// Waits until no device touches the target's memory of the window.
offpath_status_t wait_closed(Window& window, int target) {
    WindowLoss& loss = *window.loss;
    const auto at = static_cast<std::size_t>(target);
    if (loss.closed[at]) return OFFPATH_OK;
    std::uint64_t first_ns = 0;
    for (Backoff backoff;; backoff.pause()) {
        Closed closed{};
        if (!loss.ledger->read_closed(target, closed)) return OFFPATH_ERR_PEER_LOST;
        if (closed == Closed::yes) break;
        if (first_ns == 0) {
            first_ns = now_ns();
            if (!loss.ledger->ask_to_close(target)) return OFFPATH_ERR_PEER_LOST;
        }
        if (closed == Closed::in_doubt || now_ns() - first_ns > notice_ns)
            return give_up(window, fmt::format("the device of rank {} may still write its memory, so "
                                               "nothing can run again there",
                                               target));
    }
    loss.closed[at] = true;
    return OFFPATH_OK;
}

offpath_status_t close_at(Window& window, int target) {
    const LossGuard guard(window);
    return wait_closed(window, target);
}

void note_granted(Window& window, int target, int type) {
    auto& granted = window.loss->granted;
    if (target == all_targets) {
        std::fill(granted.begin(), granted.end(), type);
    } else {
        granted[static_cast<std::size_t>(target)] = type;
    }
}

// Waits until no rank holds a lock of the target's device, whose ledger is closed, that excludes `type`.
offpath_status_t wait_for_holders(Window& window, int target, int type) {
    for (int rank = 0; rank < window.size; ++rank) {
        for (Backoff backoff;; backoff.pause()) {
            if (rank == window.rank) break;
            Holds holds{};
            if (!window.loss->ledger->read_holds(rank, target, holds)) return OFFPATH_ERR_PEER_LOST;
            if (holds == Holds::no || (holds == Holds::shared && type == MPI_LOCK_SHARED)) break;
        }
    }
    return OFFPATH_OK;
}

// Of a call of the host's MPI.
offpath_status_t status_of(const Window& window, int error) {
    if (error == MPI_SUCCESS) return OFFPATH_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    PMPI_Error_string(error, text, &length);
    return give_up(window, fmt::format("the host's MPI does not replace the lost device: {}", text));
}

// Whether this rank has the target locked on the host's half.
bool is_locked_by_host(const Window& window, int target) {
    const auto at = static_cast<std::size_t>(target);
    if (window.way == Way::host)
        return window.all != Window::Lock::none || window.locks[at] != Window::Lock::none;
    return window.loss->host_lock_all || window.loss->host_locks[at];
}

// Locks of the device become locks of the host. Nobody can hold one there that excludes them.
offpath_status_t convert_locks(Window& window) {
    WindowLoss& loss = *window.loss;
    if (window.all != Window::Lock::none && !loss.host_lock_all &&
        loss.granted[static_cast<std::size_t>(window.rank)] != 0) {
        const int assertion = window.all == Window::Lock::assumed ? MPI_MODE_NOCHECK : 0;
        const int error = PMPI_Win_lock_all(assertion, window.host);
        loss.host_lock_all = error == MPI_SUCCESS;
        return status_of(window, error);
    }
    for (int target = 0; target < window.size; ++target) {
        const auto at = static_cast<std::size_t>(target);
        if (loss.granted[at] == 0 || loss.host_locks[at] || loss.host_lock_all) continue;
        const int assertion = window.locks[at] == Window::Lock::assumed ? MPI_MODE_NOCHECK : 0;
        const int error = PMPI_Win_lock(loss.granted[at], target, assertion, window.host);
        if (error != MPI_SUCCESS) return status_of(window, error);
        loss.host_locks[at] = true;
    }
    return OFFPATH_OK;
}

offpath_status_t execute(Window& window, const OneSidedOperation& operation, bool waits,
                         std::uint64_t skipped = 0) {
    if (is_locked_by_host(window, operation.target))
        return status_of(window, execute_by_host(window, operation, waits, skipped));
    int error = PMPI_Win_lock(MPI_LOCK_SHARED, operation.target, 0, window.host);
    if (error != MPI_SUCCESS) return status_of(window, error);
    error = execute_by_host(window, operation, false, skipped);
    return status_of(window, first_error(error, PMPI_Win_unlock(operation.target, window.host)));
}

// How much of the update the target's device has applied, in bytes from its beginning. A long update is
// several pieces, which it applies one after the other. `status` is set if that is not known, or if a result
// is lost.
std::uint64_t applied_bytes(Window& window, const Unfinished& one, const Ledger::Updates& updates,
                            offpath_status_t& status) {
    const OneSidedOperation& operation = one.operation;
    const std::uint64_t bytes = operation.at.bytes(), begin = one.update_end - bytes;
    if (updates.begun <= begin) return 0;
    const bool all = updates.applied >= one.update_end;
    if ((all || updates.applied == updates.begun) && !fetches(operation))
        return std::min(updates.applied - begin, bytes);
    status = give_up(
        window,
        fmt::format("{} to rank {} cannot run again: {}", one.call, operation.target,
                    all ? "the lost device has applied it, and its result is lost"
                        : "the lost device may have applied a part of it, and it must happen exactly once"));
    return 0;
}

// Unlike wait_for(), it finishes no other request, for which another window could have to depart: two threads
// could wait for each other's windows.
void wait_alone(offpath_request_h request) {
    for (Backoff backoff; offpath_request_test(request) == OFFPATH_IN_PROGRESS;)
        backoff.pause(request);
    offpath_request_free(request);
}

bool is_done(const Unfinished& one) {
    return one.again || (one.device != nullptr && offpath_request_test(one.device) == OFFPATH_OK);
}

OneSidedOperation operation_of(const WindowLoss::Move& move) {
    OneSidedOperation operation;
    operation.kind = move.kind;
    operation.target = move.target;
    operation.offset = move.offset;
    operation.at = {shape_of(MPI_BYTE), move.bytes, false};
    (move.kind == OneSidedOperation::Kind::put ? operation.origin : operation.result) = {move.address,
                                                                                         operation.at};
    return operation;
}

offpath_status_t run_unfinished(Window& window) {
    WindowLoss& loss = *window.loss;
    offpath_status_t result = OFFPATH_OK;
    const auto note = [&](offpath_status_t status) { result = result == OFFPATH_OK ? status : result; };
    for (const WindowLoss::Move& move : std::exchange(loss.moves, {})) {
        offpath_status_t status = wait_closed(window, move.target);
        if (status == OFFPATH_OK) status = execute(window, operation_of(move), true);
        again.fetch_add(1, std::memory_order_relaxed);
        note(status);
    }
    std::vector<Ledger::Updates> known(static_cast<std::size_t>(window.size));
    std::vector<bool> is_known(known.size());
    for (Unfinished& one : loss.unfinished) {
        if (is_done(one)) continue;
        const int target = one.operation.target;
        const auto at = static_cast<std::size_t>(target);
        if (const offpath_status_t status = wait_closed(window, target); status != OFFPATH_OK) {
            note(status);
            continue;
        }
        std::uint64_t applied = 0;
        if (updates(one.operation)) {
            if (!is_known[at] && !loss.ledger->read_updates(target, known[at])) {
                note(OFFPATH_ERR_PEER_LOST);
                continue;
            }
            is_known[at] = true;
            offpath_status_t status = OFFPATH_OK;
            applied = applied_bytes(window, one, known[at], status);
            one.again = status == OFFPATH_OK;
            if (status != OFFPATH_OK) note(status);
            if (status != OFFPATH_OK || applied == one.operation.at.bytes()) continue;
        }
        const offpath_status_t status = execute(window, one.operation, true, applied);
        one.again = status == OFFPATH_OK;
        again.fetch_add(1, std::memory_order_relaxed);
        note(status);
    }
    return result;
}

}  // namespace

void prepare_for_loss(Window& window) {
    if (window.loss != nullptr || window.device == nullptr || window.host == MPI_WIN_NULL ||
        window.outlives_no_loss)
        return;
    Ledger* const ledger = Ledger::make(window);
    window.outlives_no_loss = ledger == nullptr;
    if (ledger != nullptr)
        window.loss = make_owned<WindowLoss>(ledger, static_cast<std::size_t>(window.size));
}

[[gnu::hot]] void note_unfinished(Window& window, OneSidedOperation&& operation, const char* call,
                                  offpath_request_h device) {
    WindowLoss& loss = *window.loss;
    Unfinished& one = loss.unfinished.emplace_back();
    one.number = ++loss.operations;
    one.operation = std::move(operation);
    one.call = call;
    one.device = device;
    if (!updates(one.operation)) return;
    std::uint64_t& updated = loss.updated[static_cast<std::size_t>(one.operation.target)];
    updated += one.operation.at.bytes();
    one.update_end = updated;
}

[[gnu::hot]] offpath_status_t note_flushed(Window& window, int target, std::uint64_t latest) {
    if (window.loss == nullptr) return OFFPATH_OK;
    const LossGuard guard(window);
    auto& moves = window.loss->moves;
    if (target == all_targets && latest == window.loss->operations) {
        moves.clear();
    } else {
        std::erase_if(moves, [&](const WindowLoss::Move& move) {
            return (target == all_targets || move.target == target) && move.number <= latest;
        });
    }
    offpath_status_t status = OFFPATH_OK;
    std::erase_if(window.loss->unfinished, [&](const Unfinished& one) {
        if ((target != all_targets && one.operation.target != target) || one.number > latest) return false;
        if (one.device == nullptr) return true;
        if (offpath_request_test(one.device) == OFFPATH_ERR_PEER_LOST && !one.again)
            status = OFFPATH_ERR_PEER_LOST;
        return false;
    });
    return status;
}

bool note_ended(Window& window, offpath_request_h device) {
    if (window.loss == nullptr) return false;
    const LossGuard guard(window);
    auto& unfinished = window.loss->unfinished;
    const auto one = std::find_if(unfinished.begin(), unfinished.end(),
                                  [&](const Unfinished& each) { return each.device == device; });
    if (one == unfinished.end()) return false;
    const bool done = one->again;
    unfinished.erase(one);
    return done;
}

offpath_status_t depart_after(Window& window, offpath_status_t status) {
    if (status != OFFPATH_ERR_PEER_LOST || window.loss == nullptr) return status;
    const LossGuard guard(window);
    if (window.outlives_no_loss) return status;
    WindowLoss& loss = *window.loss;
    lost_on_team(*window.team, OFFPATH_ERR_PEER_LOST);
    offpath_device_state_t own = offpath_context_device_state(runtime().context);
    if (own == OFFPATH_DEVICE_SILENT && offpath_context_end_stopped_device(runtime().context) == OFFPATH_OK)
        own = OFFPATH_DEVICE_ENDED;
    if (own == OFFPATH_DEVICE_SILENT) {
        loss.ledger->close(Closed::in_doubt);
        window.outlives_no_loss = true;
        return give_up(window,
                       "the device of this rank hangs and may still write memory, so nothing can run "
                       "again");
    }
    if (own == OFFPATH_DEVICE_ENDED) loss.ledger->close(Closed::yes);
    // A window on the host's way has its locks there already.
    loss.departed.store(window.way == Way::device, std::memory_order_release);
    // While the own device serves, operations on it may still be outstanding.
    offpath_request_h request = nullptr;
    if (offpath_window_flush(window.device, OFFPATH_ALL_TARGETS, &request) == OFFPATH_OK) wait_alone(request);
    status = has_departed(window) ? convert_locks(window) : OFFPATH_OK;
    if (status == OFFPATH_OK) status = run_unfinished(window);
    loss.moves.clear();
    // An operation with a request returns the error of its own, if it has one.
    std::erase_if(loss.unfinished, [](const Unfinished& one) { return one.device == nullptr; });
    return status;
}

offpath_status_t start_departed(Window& window, const OneSidedOperation& operation, bool waits) {
    const LossGuard guard(window);
    const offpath_status_t status = wait_closed(window, operation.target);
    return status == OFFPATH_OK ? execute(window, operation, waits) : status;
}

offpath_status_t flush_departed(Window& window, int target) {
    const LossGuard guard(window);
    if (window.loss->host_lock_all && target == all_targets)
        return status_of(window, PMPI_Win_flush_all(window.host));
    int error = MPI_SUCCESS;
    const int first = target == all_targets ? 0 : target,
              last = target == all_targets ? window.size - 1 : target;
    for (int rank = first; rank <= last; ++rank)
        if (is_locked_by_host(window, rank)) error = first_error(error, PMPI_Win_flush(rank, window.host));
    return status_of(window, error);
}

offpath_status_t lock_departed(Window& window, int type, int target, int assertion) {
    offpath_status_t status = close_at(window, target);
    if (status == OFFPATH_OK && (assertion & MPI_MODE_NOCHECK) == 0)
        status = wait_for_holders(window, target, type);
    if (status == OFFPATH_OK) status = status_of(window, PMPI_Win_lock(type, target, assertion, window.host));
    const LossGuard guard(window);
    if (status == OFFPATH_OK) window.loss->host_locks[static_cast<std::size_t>(target)] = true;
    return status;
}

offpath_status_t lock_all_departed(Window& window, int assertion) {
    offpath_status_t status = OFFPATH_OK;
    for (int target = 0; target < window.size && status == OFFPATH_OK; ++target) {
        status = close_at(window, target);
        if (status == OFFPATH_OK && (assertion & MPI_MODE_NOCHECK) == 0)
            status = wait_for_holders(window, target, MPI_LOCK_SHARED);
    }
    if (status == OFFPATH_OK) status = status_of(window, PMPI_Win_lock_all(assertion, window.host));
    const LossGuard guard(window);
    window.loss->host_lock_all = status == OFFPATH_OK;
    return status;
}

offpath_status_t unlock_departed(Window& window, int target) {
    const LossGuard guard(window);
    WindowLoss& loss = *window.loss;
    if (target == all_targets) {
        if (!std::exchange(loss.host_lock_all, false)) return OFFPATH_OK;
        return status_of(window, PMPI_Win_unlock_all(window.host));
    }
    const auto at = static_cast<std::size_t>(target);
    if (!loss.host_locks[at]) return OFFPATH_OK;
    loss.host_locks[at] = false;
    return status_of(window, PMPI_Win_unlock(target, window.host));
}

void ask_for_lock(Window& window, int target, int type) {
    if (window.loss == nullptr) return;
    const Holds holds = type == 0 ? Holds::no : type == MPI_LOCK_EXCLUSIVE ? Holds::exclusive : Holds::shared;
    const int first = target == all_targets ? 0 : target,
              last = target == all_targets ? window.size - 1 : target;
    for (int rank = first; rank <= last; ++rank)
        window.loss->ledger->hold(rank, holds);
}

offpath_status_t has_lock(Window& window, int target, int type) {
    if (window.loss == nullptr) return OFFPATH_OK;
    const LossGuard guard(window);
    note_granted(window, target, type);
    return has_departed(window) ? convert_locks(window) : OFFPATH_OK;
}

void has_no_lock(Window& window, int target) {
    if (window.loss == nullptr) return;
    const LossGuard guard(window);
    note_granted(window, target, 0);
    ask_for_lock(window, target, 0);
}

void end_departure(Window& window) {
    if (window.loss != nullptr) window.loss->departed.store(false, std::memory_order_release);
}

std::uint64_t run_again() {
    return again.load();
}

}  // namespace offpath::mpi
