// Active targets: fences, and MPI_Win_post, start, complete and wait by empty messages on the window's
// communicator. The device moves the data. Once an origin has flushed its operations, they are in the
// target's memory.
#include <offpath/types.h>

#include <numeric>

#include "p2p/parcel_progress.h"
#include "requests/offloaded_requests.h"
#include "rma/host_or_device.h"
#include "rma/mixed_windows.h"
#include "rma/one_sided_operation.h"
#include "rma/served_window.h"
#include "rma/window_locks.h"

using namespace offpath::mpi;

namespace {

constexpr int post_tag = 1;
constexpr int complete_tag = 2;
constexpr int fence_assertions = MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
constexpr int post_assertions = MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT;

// Sets `ranks` to the window's ranks of the group's members. Returns false, with an empty result, if a member
// is not a rank of the window.
bool ranks_of(const Window& window, MPI_Group group, std::vector<int>& ranks) {
    int size = 0;
    PMPI_Group_size(group, &size);
    std::vector<int> members(static_cast<std::size_t>(size));
    std::iota(members.begin(), members.end(), 0);
    ranks.resize(members.size());
    MPI_Group all = MPI_GROUP_NULL;
    PMPI_Comm_group(window.comm, &all);
    PMPI_Group_translate_ranks(group, size, members.data(), all, ranks.data());
    PMPI_Group_free(&all);
    for (int rank : ranks) {
        if (rank == MPI_UNDEFINED) return false;
    }
    return true;
}

void tell(const Window& window, const std::vector<int>& ranks, int tag, std::vector<MPI_Request>& requests) {
    for (int rank : ranks) {
        requests.emplace_back();
        PMPI_Isend(nullptr, 0, MPI_BYTE, rank, tag, window.comm, &requests.back());
    }
}

void wait_all(std::vector<MPI_Request>& requests) {
    for (MPI_Request& request : requests)
        p2p::wait_for_host(&request, MPI_STATUS_IGNORE);
    requests.clear();
}

int fence(Window& window, int assertion) {
    if (!begin_fence(window, (assertion & MPI_MODE_NOSUCCEED) == 0))
        return before_the_end(window, "MPI_Win_fence");
    const int error = window.mixed != nullptr ? fence_mixed(window) : fence_either_way(window, assertion);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return error;
}

// Notes an access epoch for the host's part of the window. The host's MPI knows its targets.
void note_access(Window& window, bool begins) {
    const std::lock_guard guard(window.mutex);
    window.access = begins;
    if (begins) window.fence = false;
}

void note_exposure(Window& window, bool begins) {
    const std::lock_guard guard(window.mutex);
    window.exposed = begins;
    if (begins) window.fence = false;
}

// False: another epoch forbids it.
bool begin_access(Window& window, const std::vector<int>& ranks) {
    const std::lock_guard guard(window.mutex);
    if (window.access || window.all != Window::Lock::none) return false;
    window.access = true;
    window.fence = false;
    window.started = ranks;
    return true;
}

// False: the former one has not ended.
bool begin_exposure(Window& window) {
    const std::lock_guard guard(window.mutex);
    if (window.exposed) return false;
    window.exposed = true;
    window.fence = false;
    return true;
}

int start_access(Window& window, MPI_Group group, int assertion) {
    std::vector<int> ranks;
    if (!ranks_of(window, group, ranks)) return MPI_ERR_GROUP;
    if (!begin_access(window, ranks)) return before_the_end(window, "MPI_Win_start");
    if ((assertion & MPI_MODE_NOCHECK) != 0) return MPI_SUCCESS;
    std::vector<MPI_Request> requests;
    for (int rank : ranks) {
        requests.emplace_back();
        PMPI_Irecv(nullptr, 0, MPI_BYTE, rank, post_tag, window.comm, &requests.back());
    }
    wait_all(requests);
    return MPI_SUCCESS;
}

int complete_access(Window& window) {
    std::vector<int> ranks;
    {
        const std::lock_guard guard(window.mutex);
        if (!window.access)
            return out_of_turn("MPI_Win_complete", "no MPI_Win_start on this window came before");
        ranks = window.started;
    }
    offpath_status_t status = OFFPATH_OK;
    for (int rank : ranks) {
        const offpath_status_t flushed = flush(window, rank);
        if (status == OFFPATH_OK) status = flushed;
    }
    // The messages are sent even after an error, because the targets wait for them.
    std::vector<MPI_Request> requests;
    tell(window, ranks, complete_tag, requests);
    wait_all(requests);
    const std::lock_guard guard(window.mutex);
    window.access = false;
    window.started.clear();
    return error_of(status);
}

int post(Window& window, MPI_Group group, int assertion) {
    std::vector<int> ranks;
    if (!ranks_of(window, group, ranks)) return MPI_ERR_GROUP;
    if (!begin_exposure(window))
        return out_of_turn("MPI_Win_post", "the epoch that MPI_Win_post began on this window has not ended");
    std::atomic_thread_fence(std::memory_order_seq_cst);
    for (int rank : ranks) {
        window.awaited.emplace_back();
        PMPI_Irecv(nullptr, 0, MPI_BYTE, rank, complete_tag, window.comm, &window.awaited.back());
    }
    if ((assertion & MPI_MODE_NOCHECK) == 0) tell(window, ranks, post_tag, window.told);
    return MPI_SUCCESS;
}

// Sets `over` if the exposure epoch has ended.
int end_exposure(Window& window, bool waits, bool& over) {
    {
        const std::lock_guard guard(window.mutex);
        if (!window.exposed)
            return out_of_turn(waits ? "MPI_Win_wait" : "MPI_Win_test",
                               "no MPI_Win_post on this window came before");
    }
    int flag = 1;
    if (waits) {
        wait_all(window.awaited);
    } else {
        poll();
        p2p::poll();
        PMPI_Testall(static_cast<int>(window.awaited.size()), window.awaited.data(), &flag,
                     MPI_STATUSES_IGNORE);
    }
    over = flag != 0;
    if (!over) return MPI_SUCCESS;
    window.awaited.clear();
    wait_all(window.told);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::lock_guard guard(window.mutex);
    window.exposed = false;
    return MPI_SUCCESS;
}

}  // namespace

extern "C" {

[[gnu::hot]] OFFPATH_API int MPI_Win_fence(int assertion, MPI_Win win) {
    const presence::Inside inside;
    const Served call(win);
    if (call.known() == nullptr) return PMPI_Win_fence(assertion, win);
    if ((assertion & ~fence_assertions) != 0) return raise(call.window(), MPI_ERR_ASSERT);
    return call.ended(fence(call.window(), assertion));
}

[[gnu::hot]] OFFPATH_API int MPI_Win_start(MPI_Group group, int assertion, MPI_Win win) {
    const presence::Inside inside;
    const Served call(win);
    if (call.by_host()) {
        const int result = PMPI_Win_start(group, assertion, call.host());
        if (result == MPI_SUCCESS && call.known() != nullptr) note_access(call.window(), true);
        return call.ended(result);
    }
    if (group == MPI_GROUP_NULL) return raise(call.window(), MPI_ERR_GROUP);
    if (call.window().mixed != nullptr) return not_mixed(call.window(), "MPI_Win_start");
    if ((assertion & ~MPI_MODE_NOCHECK) != 0) return raise(call.window(), MPI_ERR_ASSERT);
    return call.ended(start_access(call.window(), group, assertion));
}

[[gnu::hot]] OFFPATH_API int MPI_Win_complete(MPI_Win win) {
    const presence::Inside inside;
    const Served call(win);
    if (!call.by_host()) return call.ended(complete_access(call.window()));
    if (call.known() == nullptr) return PMPI_Win_complete(win);
    note_access(call.window(), false);
    call.window().epoch = {};
    return call.ended(PMPI_Win_complete(call.host()));
}

[[gnu::hot]] OFFPATH_API int MPI_Win_post(MPI_Group group, int assertion, MPI_Win win) {
    const presence::Inside inside;
    const Served call(win);
    if (call.by_host()) {
        const int result = PMPI_Win_post(group, assertion, call.host());
        if (result == MPI_SUCCESS && call.known() != nullptr) note_exposure(call.window(), true);
        return call.ended(result);
    }
    if (group == MPI_GROUP_NULL) return raise(call.window(), MPI_ERR_GROUP);
    if (call.window().mixed != nullptr) return not_mixed(call.window(), "MPI_Win_post");
    if ((assertion & ~post_assertions) != 0) return raise(call.window(), MPI_ERR_ASSERT);
    return call.ended(post(call.window(), group, assertion));
}

[[gnu::hot]] OFFPATH_API int MPI_Win_wait(MPI_Win win) {
    const presence::Inside inside;
    const Served call(win);
    if (call.by_host()) {
        const int result = PMPI_Win_wait(call.host());
        if (result == MPI_SUCCESS && call.known() != nullptr) note_exposure(call.window(), false);
        return call.ended(result);
    }
    bool over = false;
    return call.ended(end_exposure(call.window(), true, over));
}

OFFPATH_API int MPI_Win_test(MPI_Win win, int* flag) {
    const Served call(win);
    if (call.by_host() || flag == nullptr) {
        const int result = PMPI_Win_test(call.host(), flag);
        if (result == MPI_SUCCESS && call.known() != nullptr && *flag != 0)
            note_exposure(call.window(), false);
        return call.ended(result);
    }
    bool over = false;
    const int error = end_exposure(call.window(), false, over);
    *flag = over ? 1 : 0;
    return call.ended(error);
}

}  // extern "C"
