// Windows: memory of every rank's device that the other devices read, write and update: how they are made and
// synchronized. A window that is made with the key REMOTE_DEST_HETERO is one of hosts and devices
// (mpi/rma/mixed_windows.h).
#include "openmp/mpi/windows.h"

#include "mpi/runtime/mixed_teams.h"
#include "openmp/mpi/handles.h"
#include "openmp/mpi/info.h"

#include <atomic>
#include <memory>
#include <string>

namespace offpath::region_mpi {

namespace teams = mpi::mixed_teams;

namespace {

Handles<MPI_Win, Window, true> handles;

}  // namespace

Window& window_of(MPI_Win handle) {
    Window* const window =
        handle == MPI_WIN_NULL || own(handle) == MPI_WIN_NULL ? nullptr : handles.find(handle);
    if (window == nullptr) throw MpiError{MPI_ERR_WIN, "it is no window of a target region"};
    return *window;
}

std::uint32_t target_in(const Window& window, int target) {
    const std::size_t ranks = window.mixed ? window.exposed.size() / 2 : window.exposed.size();
    if (target < 0 || static_cast<std::size_t>(target) >= ranks)
        throw MpiError{MPI_ERR_RANK, "the target is " + std::to_string(target)};
    const auto rank = static_cast<std::uint32_t>(target);
    if (!window.mixed) return rank;
    return teams::member(rank, window.to_hosts ? teams::End::host : teams::End::device);
}

namespace {

void wait_for(offpath_request_h request, const char* what) {
    const offpath_status_t status = offpath_request_wait(request);
    offpath_request_free(request);
    check(status, what);
}

void flush(Window& window, std::uint32_t target) {
    check(offpath_window_flush(window.window, target, nullptr), "the operations");
}

void barrier(const Window& window) {
    offpath_request_h request = nullptr;
    check(offpath_ibarrier(window.team.get(), &request), "the barrier");
    wait_for(request, "the barrier");
}

void create(Communicator& communicator, void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Win* handle) {
    if (size < 0) throw MpiError{MPI_ERR_SIZE, "the size is negative"};
    if (unit <= 0) throw MpiError{MPI_ERR_DISP, "the unit of displacements is not positive"};
    const std::optional<bool> key = key_in(info);
    auto made = std::make_unique<Window>();
    made->mixed = key.has_value();
    made->to_hosts = key.value_or(false);
    made->team = made->mixed ? new_mixed_team(communicator) : communicator.devices;
    made->exposed.resize(made->mixed ? 2 * communicator.size : communicator.size);
    const Exposed mine{static_cast<std::uint64_t>(size), static_cast<std::uint64_t>(unit)};
    offpath_request_h request = nullptr;
    check(offpath_iallgather(made->team.get(), &mine, made->exposed.data(), sizeof mine, &request), "start");
    wait_for(request, "the units of displacements");
    check(offpath_window_create(made->team.get(), base, static_cast<std::size_t>(size), &made->window),
          "the window");
    *handle = handles.make(made.release());
}

void end(MPI_Win* handle) {
    const std::unique_ptr<Window> window(&window_of(*handle));
    handles.forget(*handle);
    *handle = MPI_WIN_NULL;
    check(offpath_window_destroy(window->window), "the window");
}

void lock(Window& window, std::uint32_t target, int kind) {
    if (kind != MPI_LOCK_SHARED && kind != MPI_LOCK_EXCLUSIVE)
        throw MpiError{MPI_ERR_LOCKTYPE, "there is no such kind of lock"};
    check(
        offpath_window_lock(window.window, target,
                            kind == MPI_LOCK_SHARED ? OFFPATH_LOCK_SHARED : OFFPATH_LOCK_EXCLUSIVE, nullptr),
        "the lock");
}

void unlock(Window& window, std::uint32_t target) {
    flush(window, target);
    check(offpath_window_unlock(window.window, target), "the lock");
}

}  // namespace
}  // namespace offpath::region_mpi

using namespace offpath::region_mpi;

OFFPATH_EXPORT int MPI_Win_create(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm,
                                  MPI_Win* win) {
    return in_call("MPI_Win_create", comm,
                   [&](Communicator& communicator) { create(communicator, base, size, unit, info, win); });
}

OFFPATH_EXPORT int MPI_Win_free(MPI_Win* win) {
    return in_call("MPI_Win_free", MPI_COMM_WORLD, [&](Communicator&) { end(win); });
}

OFFPATH_EXPORT int MPI_Win_set_info(MPI_Win win, MPI_Info info) {
    return in_window("MPI_Win_set_info", win, [&](Window& window) {
        const std::optional<bool> key = key_in(info);
        if (key.value_or(false) && !window.mixed)
            throw MpiError{MPI_ERR_INFO_VALUE, "REMOTE_DEST_HETERO: the window was made without the key"};
        if (key) window.to_hosts = *key;
    });
}

OFFPATH_EXPORT int MPI_Win_fence(int, MPI_Win win) {
    return in_window("MPI_Win_fence", win, [&](Window& window) {
        flush(window, OFFPATH_ALL_TARGETS);
        barrier(window);
    });
}

OFFPATH_EXPORT int MPI_Win_lock(int kind, int target, int, MPI_Win win) {
    return in_window("MPI_Win_lock", win,
                     [&](Window& window) { lock(window, target_in(window, target), kind); });
}

OFFPATH_EXPORT int MPI_Win_unlock(int target, MPI_Win win) {
    return in_window("MPI_Win_unlock", win,
                     [&](Window& window) { unlock(window, target_in(window, target)); });
}

OFFPATH_EXPORT int MPI_Win_lock_all(int, MPI_Win win) {
    return in_window("MPI_Win_lock_all", win, [&](Window& window) {
        for (std::uint32_t target = 0; target < window.exposed.size(); ++target)
            lock(window, target, MPI_LOCK_SHARED);
    });
}

OFFPATH_EXPORT int MPI_Win_unlock_all(MPI_Win win) {
    return in_window("MPI_Win_unlock_all", win, [&](Window& window) {
        for (std::uint32_t target = 0; target < window.exposed.size(); ++target)
            unlock(window, target);
    });
}

// A flush waits for the target, too, so it is also a local one.
#define OFFPATH_FLUSH(name)                                                                  \
    OFFPATH_EXPORT int MPI_Win_##name(int target, MPI_Win win) {                             \
        return in_window("MPI_Win_" #name, win,                                              \
                         [&](Window& window) { flush(window, target_in(window, target)); }); \
    }                                                                                        \
    OFFPATH_EXPORT int MPI_Win_##name##_all(MPI_Win win) {                                   \
        return in_window("MPI_Win_" #name "_all", win,                                       \
                         [&](Window& window) { flush(window, OFFPATH_ALL_TARGETS); });       \
    }
OFFPATH_FLUSH(flush)
OFFPATH_FLUSH(flush_local)

// The proxies and this process see the same memory.
OFFPATH_EXPORT int MPI_Win_sync(MPI_Win win) {
    return in_window("MPI_Win_sync", win,
                     [](Window&) { std::atomic_thread_fence(std::memory_order_seq_cst); });
}
