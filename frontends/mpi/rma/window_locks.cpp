#include "window_locks.h"

#include <offpath/types.h>

#include <fmt/format.h>

#include <algorithm>

#include "epochs.h"
#include "window_loss.h"

namespace offpath::mpi {
namespace {

using Lock = Window::Lock;

void set(Window& window, Lock& record, Lock state) {
    if (&record != &window.all)
        window.locked += (state == Lock::none ? 0 : 1) - (record == Lock::none ? 0 : 1);
    record = state;
}

// Sets the lock's record, unless another epoch forbids the lock.
bool enter(Window& window, Lock& record, Lock state) {
    const std::lock_guard guard(window.mutex);
    if (record != Lock::none || window.all != Lock::none || window.access) return false;
    set(window, record, state);
    window.fence = false;
    return true;
}

// Returns the former lock; `none` means that it was not held.
Lock leave(Window& window, Lock& record) {
    const std::lock_guard guard(window.mutex);
    const Lock was = record;
    set(window, record, Lock::none);
    return was;
}

bool is_held(Window& window, const Lock& record) {
    const std::lock_guard guard(window.mutex);
    return record != Lock::none;
}

OpenEpochs epochs_of(const Window& window) {
    return {window.fence, window.access, window.exposed, window.all != Lock::none, window.locked > 0};
}

Lock& lock_of(Window& window, int target) {
    return target == all_targets ? window.all : window.locks[static_cast<std::size_t>(target)];
}

}  // namespace

int out_of_turn(const char* call, const std::string& why) {
    warn(Code::window, fmt::format("rank {}: {}: {}", runtime().rank, call, why));
    return MPI_ERR_RMA_SYNC;
}

int before_the_end(Window& window, const char* call) {
    const OpenEpochs open = open_epochs(window);
    const char* const began = open.lock_all   ? "MPI_Win_lock_all"
                              : open.lock     ? "MPI_Win_lock"
                              : open.access   ? "MPI_Win_start"
                              : open.exposure ? "MPI_Win_post"
                                              : "another thread";
    return out_of_turn(call, fmt::format("the epoch that {} began on this window has not ended", began));
}

bool is_target(const Window& window, int rank) {
    return rank >= 0 && rank < window.size;
}

int lock_one(Window& window, int type, int rank, int assertion) {
    Lock& record = window.locks[static_cast<std::size_t>(rank)];
    const bool assumed = (assertion & MPI_MODE_NOCHECK) != 0;
    if (!enter(window, record, assumed ? Lock::assumed : Lock::held))
        return raise(window, before_the_end(window, "MPI_Win_lock"));
    offpath_status_t status = OFFPATH_ERR_PEER_LOST;
    if (!has_departed(window)) {
        if (!assumed) status = lock_device(window, type, rank);
        if (assumed || status == OFFPATH_OK) {
            status = has_lock(window, rank, type);
            if (status == OFFPATH_OK) return MPI_SUCCESS;
            leave(window, record);
            return raise(window, error_of(status));
        }
        leave(window, record);
        status = depart_after(window, status);
        if (status != OFFPATH_OK) return raise(window, error_of(status));
        enter(window, record, Lock::held);
    }
    status = lock_departed(window, type, rank, assertion);
    if (status == OFFPATH_OK) return MPI_SUCCESS;
    leave(window, record);
    return raise(window, error_of(status));
}

int lock_everybody(Window& window, int assertion) {
    const bool assumed = (assertion & MPI_MODE_NOCHECK) != 0;
    if (!enter(window, window.all, assumed ? Lock::assumed : Lock::held))
        return raise(window, before_the_end(window, "MPI_Win_lock_all"));
    offpath_status_t status = OFFPATH_OK;
    if (!has_departed(window)) {
        if (!assumed) status = lock_device(window);
        if (status == OFFPATH_OK) {
            status = has_lock(window, all_targets, MPI_LOCK_SHARED);
            if (status == OFFPATH_OK) return MPI_SUCCESS;
            leave(window, window.all);
            return raise(window, error_of(status));
        }
        leave(window, window.all);
        status = depart_after(window, status);
        if (status != OFFPATH_OK) return raise(window, error_of(status));
        enter(window, window.all, Lock::held);
    }
    status = lock_all_departed(window, assertion);
    if (status == OFFPATH_OK) return MPI_SUCCESS;
    leave(window, window.all);
    return raise(window, error_of(status));
}

// Ends an epoch: its operations are completed, then the lock is released.
int unlock(Window& window, int target) {
    Lock& record = lock_of(window, target);
    if (!is_held(window, record)) {
        const bool all = target == all_targets;
        const int error = out_of_turn(
            all ? "MPI_Win_unlock_all" : "MPI_Win_unlock",
            all ? "no lock of all ranks is held" : fmt::format("no lock of rank {} is held", target));
        return raise(window, error);
    }
    offpath_status_t status = flush(window, target);
    LossGuard guard(window);
    const Lock was = leave(window, record);
    if (has_departed(window)) {
        const offpath_status_t given = unlock_departed(window, target);
        if (status == OFFPATH_OK) status = given;
    } else if (was == Lock::held) {
        const bool all = target == all_targets;
        const offpath_status_t given =
            unlock_device(window, all ? 0 : target, all ? window.size - 1 : target);
        // A lost device's lock is released.
        if (status == OFFPATH_OK && !(given == OFFPATH_ERR_PEER_LOST && window.loss != nullptr))
            status = given;
    }
    has_no_lock(window, target);
    guard.unlock();
    return status == OFFPATH_OK ? MPI_SUCCESS : raise(window, error_of(status));
}

offpath_status_t lock_device(Window& window, int type, int rank) {
    ask_for_lock(window, rank, type);
    const auto target = static_cast<std::uint32_t>(rank);
    const offpath_lock_t kind = type == MPI_LOCK_EXCLUSIVE ? OFFPATH_LOCK_EXCLUSIVE : OFFPATH_LOCK_SHARED;
    offpath_status_t status = offpath_direct_lock(window.device, target, kind);
    if (status == OFFPATH_ERR_UNAVAILABLE) {
        offpath_request_h request = nullptr;
        status = offpath_window_lock(window.device, target, kind, &request);
        if (status == OFFPATH_OK) status = wait_for(request);
    }
    if (status != OFFPATH_OK) ask_for_lock(window, rank, 0);
    return status;
}

offpath_status_t lock_device(Window& window) {
    ask_for_lock(window, all_targets, MPI_LOCK_SHARED);
    std::vector<offpath_request_h> requests(static_cast<std::size_t>(window.size));
    offpath_status_t status = OFFPATH_OK;
    for (std::size_t rank = 0; rank < requests.size() && status == OFFPATH_OK; ++rank)
        status = offpath_window_lock(window.device, static_cast<std::uint32_t>(rank), OFFPATH_LOCK_SHARED,
                                     &requests[rank]);
    for (offpath_request_h request : requests) {
        if (request == nullptr) continue;
        const offpath_status_t granted = wait_for(request);
        if (status == OFFPATH_OK) status = granted;
    }
    if (status != OFFPATH_OK) ask_for_lock(window, all_targets, 0);
    return status;
}

offpath_status_t unlock_device(Window& window, int first, int last) {
    offpath_status_t status = OFFPATH_OK;
    for (int rank = first; rank <= last; ++rank) {
        const offpath_status_t given = offpath_window_unlock(window.device, static_cast<std::uint32_t>(rank));
        if (status == OFFPATH_OK) status = given;
    }
    return status;
}

[[gnu::hot]] void note_lock(Window& window, int target, int assertion) {
    const std::lock_guard guard(window.mutex);
    set(window, lock_of(window, target), (assertion & MPI_MODE_NOCHECK) != 0 ? Lock::assumed : Lock::held);
    window.fence = false;
    forget_grant(window, target);
}

[[gnu::hot]] void forget_lock(Window& window, int target) {
    forget_grant(window, target);
    if (target == all_targets || is_target(window, target)) leave(window, lock_of(window, target));
}

OpenEpochs open_epochs(Window& window) {
    const std::lock_guard guard(window.mutex);
    return epochs_of(window);
}

[[gnu::hot]] bool begin_fence(Window& window, bool opens) {
    const std::lock_guard guard(window.mutex);
    if (epochs_of(window).to_be_ended()) return false;
    window.fence = opens;
    return true;
}

bool passive(Window& window, int target) {
    const std::lock_guard guard(window.mutex);
    if (window.all != Lock::none) return true;
    return target == all_targets ? window.locked > 0
                                 : window.locks[static_cast<std::size_t>(target)] != Lock::none;
}

}  // namespace offpath::mpi
