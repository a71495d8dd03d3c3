// Passive targets: locks and flushes. The lock is the target's proxy's, and is held when the call returns.
#include <offpath/types.h>

#include "transfer.h"

using namespace offpath::mpi;

namespace {

using Lock = Window::Lock;

bool is_target(const Window& window, int rank) {
    return rank >= 0 && rank < window.size;
}

// Sets the lock's record, unless there is an epoch with which it cannot be.
bool enter(Window& window, Lock& record, Lock state) {
    const std::lock_guard guard(window.mutex);
    if (record != Lock::none || window.all != Lock::none || window.access) return false;
    record = state;
    window.fence = false;
    return true;
}

// What the lock was; none: it was not held.
Lock leave(Window& window, Lock& record) {
    const std::lock_guard guard(window.mutex);
    const Lock was = record;
    record = Lock::none;
    return was;
}

int lock_one(Window& window, int type, int rank, int assertion) {
    Lock& record = window.locks[static_cast<std::size_t>(rank)];
    const bool assumed = (assertion & MPI_MODE_NOCHECK) != 0;
    if (!enter(window, record, assumed ? Lock::assumed : Lock::held)) return raise(window, MPI_ERR_RMA_SYNC);
    if (assumed) return MPI_SUCCESS;
    const auto target = static_cast<std::uint32_t>(rank);
    const offpath_lock_t kind = type == MPI_LOCK_EXCLUSIVE ? OFFPATH_LOCK_EXCLUSIVE : OFFPATH_LOCK_SHARED;
    offpath_status_t status = offpath_direct_lock(window.device, target, kind);
    if (status == OFFPATH_ERR_UNAVAILABLE) {
        offpath_request_h request = nullptr;
        status = offpath_window_lock(window.device, target, kind, &request);
        if (status == OFFPATH_OK) status = wait_for(request);
    }
    if (status == OFFPATH_OK) return MPI_SUCCESS;
    leave(window, record);
    return raise(window, error_of(status));
}

int lock_everybody(Window& window, int assertion) {
    const bool assumed = (assertion & MPI_MODE_NOCHECK) != 0;
    if (!enter(window, window.all, assumed ? Lock::assumed : Lock::held))
        return raise(window, MPI_ERR_RMA_SYNC);
    if (assumed) return MPI_SUCCESS;
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
    return status == OFFPATH_OK ? MPI_SUCCESS : raise(window, error_of(status));
}

// An epoch's end: what it did is done, then the next one may have the lock.
int unlock(Window& window, int target) {
    Lock& record = target == all_targets ? window.all : window.locks[static_cast<std::size_t>(target)];
    const Lock was = leave(window, record);
    if (was == Lock::none) return raise(window, MPI_ERR_RMA_SYNC);
    offpath_status_t status = flush(window, target);
    const int first = target == all_targets ? 0 : target;
    const int last = target == all_targets ? window.size - 1 : target;
    for (int rank = first; rank <= last && was == Lock::held; ++rank) {
        const offpath_status_t given = offpath_window_unlock(window.device, static_cast<std::uint32_t>(rank));
        if (status == OFFPATH_OK) status = given;
    }
    return status == OFFPATH_OK ? MPI_SUCCESS : raise(window, error_of(status));
}

bool passive(Window& window, int target) {
    const std::lock_guard guard(window.mutex);
    if (window.all != Lock::none) return true;
    if (target != all_targets) return window.locks[static_cast<std::size_t>(target)] != Lock::none;
    for (Lock lock : window.locks) {
        if (lock != Lock::none) return true;
    }
    return false;
}

int flush_call(Window& window, int target) {
    if (target != all_targets && !is_target(window, target)) return raise(window, MPI_ERR_RANK);
    if (!passive(window, target)) return raise(window, MPI_ERR_RMA_SYNC);
    const offpath_status_t status = flush(window, target);
    return status == OFFPATH_OK ? MPI_SUCCESS : raise(window, error_of(status));
}

}  // namespace

extern "C" {

OFFPATH_API int MPI_Win_lock(int lock_type, int rank, int assertion, MPI_Win win) {
    Window* window = find_window(win);
    if (window == nullptr) return PMPI_Win_lock(lock_type, rank, assertion, win);
    if (lock_type != MPI_LOCK_EXCLUSIVE && lock_type != MPI_LOCK_SHARED)
        return raise(*window, MPI_ERR_LOCKTYPE);
    if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
    if (!is_target(*window, rank)) return raise(*window, MPI_ERR_RANK);
    if ((assertion & ~MPI_MODE_NOCHECK) != 0) return raise(*window, MPI_ERR_ASSERT);
    return lock_one(*window, lock_type, rank, assertion);
}

OFFPATH_API int MPI_Win_unlock(int rank, MPI_Win win) {
    Window* window = find_window(win);
    if (window == nullptr) return PMPI_Win_unlock(rank, win);
    if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
    return is_target(*window, rank) ? unlock(*window, rank) : raise(*window, MPI_ERR_RANK);
}

OFFPATH_API int MPI_Win_lock_all(int assertion, MPI_Win win) {
    Window* window = find_window(win);
    if (window == nullptr) return PMPI_Win_lock_all(assertion, win);
    if ((assertion & ~MPI_MODE_NOCHECK) != 0) return raise(*window, MPI_ERR_ASSERT);
    return lock_everybody(*window, assertion);
}

OFFPATH_API int MPI_Win_unlock_all(MPI_Win win) {
    Window* window = find_window(win);
    return window == nullptr ? PMPI_Win_unlock_all(win) : unlock(*window, all_targets);
}

OFFPATH_API int MPI_Win_flush(int rank, MPI_Win win) {
    Window* window = find_window(win);
    if (window == nullptr) return PMPI_Win_flush(rank, win);
    return rank == MPI_PROC_NULL ? MPI_SUCCESS : flush_call(*window, rank);
}

OFFPATH_API int MPI_Win_flush_all(MPI_Win win) {
    Window* window = find_window(win);
    return window == nullptr ? PMPI_Win_flush_all(win) : flush_call(*window, all_targets);
}

OFFPATH_API int MPI_Win_flush_local(int rank, MPI_Win win) {
    Window* window = find_window(win);
    if (window == nullptr) return PMPI_Win_flush_local(rank, win);
    return rank == MPI_PROC_NULL ? MPI_SUCCESS : flush_call(*window, rank);
}

OFFPATH_API int MPI_Win_flush_local_all(MPI_Win win) {
    Window* window = find_window(win);
    return window == nullptr ? PMPI_Win_flush_local_all(win) : flush_call(*window, all_targets);
}

OFFPATH_API int MPI_Win_sync(MPI_Win win) {
    Window* window = find_window(win);
    if (window == nullptr) return PMPI_Win_sync(win);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return MPI_SUCCESS;
}

}  // extern "C"
