#include "mixed_windows.h"

#include <fmt/format.h>
#include <offpath/types.h>

#include <memory>

#include "communicators/agreeing.h"
#include "devices/key.h"
#include "devices/teams.h"
#include "exposed_memory.h"
#include "gpu/memory.h"
#include "runtime/mixed_teams.h"
#include "runtime/runtime.h"
#include "window_creation.h"
#include "window_handles.h"

namespace offpath::mpi {
namespace {

// `request` is what the started call has set.
offpath_status_t wait(offpath_status_t started, const offpath_request_h& request) {
    return started == OFFPATH_OK ? wait_for(request) : started;
}

// The memory that all members expose.
offpath_status_t exchange(Window& window) {
    const Window::Peer mine{static_cast<std::uint64_t>(window.traits.bytes),
                            static_cast<std::uint64_t>(window.traits.disp_unit)};
    offpath_request_h request = nullptr;
    return wait(offpath_iallgather(window.mixed, &mine, window.peers.data(), sizeof mine, &request), request);
}

// Collective over the hosts, and where it succeeds so far, over the devices.
bool make_device_window(Window& window) {
    const Window::Traits& traits = window.traits;
    const bool in_gpu = traits.bytes > 0 && gpu::is_device_memory(traits.base);
    if (in_gpu)
        warn(Code::not_supported,
             fmt::format("rank {}: MPI_Win_create: no device can use GPU memory", runtime().rank));
    const bool ready = window.mixed != nullptr && window.handle != MPI_WIN_NULL && !in_gpu;
    if (!all_agree(window.comm, ready)) return false;
    return exchange(window) == OFFPATH_OK &&
           offpath_window_create(window.mixed, traits.base, static_cast<std::size_t>(traits.bytes),
                                 &window.device) == OFFPATH_OK;
}

// A communicator of ours with the ranks of `comm`. Null: there is none.
MPI_Comm communicator_for(MPI_Comm comm) {
    if (Team& team = find_team(comm); team.departure != nullptr) return communicator_like(team);
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm made = MPI_COMM_NULL;
    PMPI_Comm_group(comm, &group);
    // Not a duplicate: MPI_Comm_dup would call the copy callbacks of the user's attributes.
    PMPI_Comm_create(comm, group, &made);
    PMPI_Group_free(&group);
    return made;
}

void set_up(Window& window, const std::vector<std::uint32_t>& ranks) {
    communicator_created(window.comm);
    window.team = &find_team(window.comm);
    int rank = 0;
    PMPI_Comm_rank(window.comm, &rank);
    window.rank =
        static_cast<int>(mixed_teams::member(static_cast<std::uint32_t>(rank), mixed_teams::End::host));
    window.size = 2 * static_cast<int>(ranks.size());
    window.peers.resize(static_cast<std::size_t>(window.size));
    window.locks.resize(window.peers.size(), Window::Lock::none);
    window.way = Way::device;
}

int make(const Window::Traits& traits, MPI_Info info, MPI_Comm comm, bool to_devices, MPI_Win* win) {
    constexpr const char* call = "MPI_Win_create";
    std::vector<std::uint32_t> ranks;
    if (const int error = devices::ranks_with_devices(comm, call, ranks); error != MPI_SUCCESS) return error;
    if (traits.bytes < 0) return devices::raise(comm, call, MPI_ERR_SIZE, "the size is negative");
    if (traits.disp_unit <= 0)
        return devices::raise(comm, call, MPI_ERR_DISP, "the unit of displacements is not positive");
    auto window = std::make_unique<Window>();
    window->traits = traits;
    window->handle = make_handle(info);
    window->to_devices = to_devices;
    window->comm = communicator_for(comm);
    if (window->comm == MPI_COMM_NULL) {
        if (window->handle != MPI_WIN_NULL) PMPI_Win_free(&window->handle);
        return devices::raise(comm, call, MPI_ERR_OTHER, "the host's MPI has no communicator for the window");
    }
    set_up(*window, ranks);
    window->mixed = devices::new_team_for(ranks);
    if (!make_device_window(*window)) {
        PMPI_Comm_free(&window->comm);
        if (window->handle != MPI_WIN_NULL) PMPI_Win_free(&window->handle);
        return devices::raise(comm, call, MPI_ERR_OTHER, "the devices cannot make the window");
    }
    if (window->rank == 0) count_made();
    expose(*window, traits.base, static_cast<std::size_t>(traits.bytes));
    *win = window->handle;
    PMPI_Win_set_attr(*win, window_keyval(), window.release());
    windows_served.fetch_add(1, std::memory_order_relaxed);
    return MPI_SUCCESS;
}

}  // namespace

bool made_mixed(const Window::Traits& traits, MPI_Info info, MPI_Comm comm, MPI_Win* win, int& result) {
    const devices::Key key = devices::key_in(info, comm, "MPI_Win_create", &result);
    if (key == devices::Key::none) return result != MPI_SUCCESS;
    result =
        unless_no_agreement(comm, [&] { return make(traits, info, comm, key == devices::Key::on, win); });
    return true;
}

bool refuses_key(const char* call, MPI_Info info, MPI_Comm comm, int& result) {
    if (devices::key_in(info, comm, call, &result) != devices::Key::none)
        result = devices::raise(comm, call, MPI_ERR_UNSUPPORTED_OPERATION,
                                "the key REMOTE_DEST_HETERO is supported by MPI_Win_create only");
    return result != MPI_SUCCESS;
}

int fence_mixed(Window& window) {
    const offpath_status_t flushed = flush(window, all_targets);
    offpath_request_h request = nullptr;
    const offpath_status_t met = wait(offpath_ibarrier(window.mixed, &request), request);
    return error_of(flushed != OFFPATH_OK ? flushed : met);
}

int not_mixed(const Window& window, const char* call) {
    warn(Code::not_supported,
         fmt::format("rank {}: {}: not supported on a window of hosts and devices", runtime().rank, call));
    return raise(window, MPI_ERR_UNSUPPORTED_OPERATION);
}

}  // namespace offpath::mpi

using namespace offpath::mpi;

extern "C" OFFPATH_API int MPI_Win_set_info(MPI_Win win, MPI_Info info) {
    const int error = PMPI_Win_set_info(win, info);
    if (error != MPI_SUCCESS || info == MPI_INFO_NULL) return error;
    int wrong = MPI_SUCCESS;
    const devices::Key key = devices::key_in(info, MPI_COMM_SELF, "MPI_Win_set_info", &wrong);
    if (key == devices::Key::none) return wrong;
    Window* const window = find_window(win);
    if (window != nullptr && window->mixed != nullptr) {
        window->to_devices = key == devices::Key::on;
        return MPI_SUCCESS;
    }
    if (key == devices::Key::off) return MPI_SUCCESS;
    warn(offpath::Code::not_supported,
         fmt::format("rank {}: MPI_Win_set_info: REMOTE_DEST_HETERO: the window was made without the key",
                     runtime().rank));
    PMPI_Win_call_errhandler(win, MPI_ERR_INFO_VALUE);
    return MPI_ERR_INFO_VALUE;
}
