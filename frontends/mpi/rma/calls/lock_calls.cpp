// The MPI calls for passive targets: locks and flushes.
#include <fmt/format.h>
#include <offpath/types.h>

#include "rma/epochs.h"
#include "rma/one_sided_operation.h"
#include "rma/served_window.h"
#include "rma/window_locks.h"

using namespace offpath::mpi;

namespace {

int end_flush(Window& window, int target, const char* name) {
    if (!passive(window, target))
        return raise(window, out_of_turn(name, target == all_targets
                                                   ? "no lock is held"
                                                   : fmt::format("no lock of rank {} is held", target)));
    const offpath_status_t status = flush(window, target);
    return status == OFFPATH_OK ? MPI_SUCCESS : raise(window, error_of(status));
}

// What a call guarantees about operations when it returns: that they are done at the target, or only that
// their buffers are free.
enum class Done : std::uint8_t { there, here };

// Completes the operations to `target`: the device's part, then the host's part by `on_host`.
template <typename OnHost>
int complete(const Served& call, int target, OnHost on_host, Done done = Done::there) {
    if (call.known() == nullptr) return on_host();
    const int error = complete_device_part(call.window(), target);
    const int result = on_host();
    if (done == Done::there) end_epoch(call.window(), target);
    return call.ended(error == MPI_SUCCESS ? result : error);
}

int flush_one(MPI_Win win, int rank, Done done, int (*on_host)(int, MPI_Win), const char* name) {
    const presence::Inside inside;
    const Served call(win);
    if (call.by_host())
        return complete(
            call, rank, [&] { return on_host(rank, call.host()); }, done);
    if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
    const int target = target_of(call.window(), rank);
    return is_target(call.window(), target) ? end_flush(call.window(), target, name)
                                            : raise(call.window(), MPI_ERR_RANK);
}

int flush_everyone(MPI_Win win, Done done, int (*on_host)(MPI_Win), const char* name) {
    const presence::Inside inside;
    const Served call(win);
    return call.by_host() ? complete(
                                call, all_targets, [&] { return on_host(call.host()); }, done)
                          : end_flush(call.window(), all_targets, name);
}

}  // namespace

extern "C" {

[[gnu::hot]] OFFPATH_API int MPI_Win_lock(int lock_type, int rank, int assertion, MPI_Win win) {
    const presence::Inside inside;
    const Served call(win);
    if (call.by_host()) {
        const int result = PMPI_Win_lock(lock_type, rank, assertion, call.host());
        if (result == MPI_SUCCESS && call.known() != nullptr && rank != MPI_PROC_NULL)
            note_lock(call.window(), rank, assertion);
        return call.ended(result);
    }
    Window& window = call.window();
    if (lock_type != MPI_LOCK_EXCLUSIVE && lock_type != MPI_LOCK_SHARED)
        return raise(window, MPI_ERR_LOCKTYPE);
    if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
    const int target = target_of(window, rank);
    if (!is_target(window, target)) return raise(window, MPI_ERR_RANK);
    if ((assertion & ~MPI_MODE_NOCHECK) != 0) return raise(window, MPI_ERR_ASSERT);
    return lock_one(window, lock_type, target, assertion);
}

[[gnu::hot]] OFFPATH_API int MPI_Win_unlock(int rank, MPI_Win win) {
    const presence::Inside inside;
    const Served call(win);
    if (call.by_host()) {
        const int result = complete(call, rank, [&] { return PMPI_Win_unlock(rank, call.host()); });
        if (call.known() != nullptr && rank != MPI_PROC_NULL) forget_lock(call.window(), rank);
        return result;
    }
    if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
    const int target = target_of(call.window(), rank);
    return is_target(call.window(), target) ? unlock(call.window(), target)
                                            : raise(call.window(), MPI_ERR_RANK);
}

OFFPATH_API int MPI_Win_lock_all(int assertion, MPI_Win win) {
    const presence::Inside inside;
    const Served call(win);
    if (call.by_host()) {
        const int result = PMPI_Win_lock_all(assertion, call.host());
        if (result == MPI_SUCCESS && call.known() != nullptr)
            note_lock(call.window(), all_targets, assertion);
        return call.ended(result);
    }
    if ((assertion & ~MPI_MODE_NOCHECK) != 0) return raise(call.window(), MPI_ERR_ASSERT);
    return lock_everybody(call.window(), assertion);
}

OFFPATH_API int MPI_Win_unlock_all(MPI_Win win) {
    const presence::Inside inside;
    const Served call(win);
    if (!call.by_host()) return unlock(call.window(), all_targets);
    const int result = complete(call, all_targets, [&] { return PMPI_Win_unlock_all(call.host()); });
    if (call.known() != nullptr) forget_lock(call.window(), all_targets);
    return result;
}

[[gnu::hot]] OFFPATH_API int MPI_Win_flush(int rank, MPI_Win win) {
    return flush_one(win, rank, Done::there, PMPI_Win_flush, "MPI_Win_flush");
}

OFFPATH_API int MPI_Win_flush_all(MPI_Win win) {
    return flush_everyone(win, Done::there, PMPI_Win_flush_all, "MPI_Win_flush_all");
}

OFFPATH_API int MPI_Win_flush_local(int rank, MPI_Win win) {
    return flush_one(win, rank, Done::here, PMPI_Win_flush_local, "MPI_Win_flush_local");
}

OFFPATH_API int MPI_Win_flush_local_all(MPI_Win win) {
    return flush_everyone(win, Done::here, PMPI_Win_flush_local_all, "MPI_Win_flush_local_all");
}

OFFPATH_API int MPI_Win_sync(MPI_Win win) {
    const Served call(win);
    if (call.by_host()) return call.ended(PMPI_Win_sync(call.host()));
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return MPI_SUCCESS;
}

}  // extern "C"
