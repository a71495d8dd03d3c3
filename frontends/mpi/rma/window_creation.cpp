// MPI_Win_create, allocate, create_dynamic, attach, detach and free. Before a window is made, the ranks agree
// on who serves it. If a rank cannot make its part of a window on the device, all ranks leave the window to
// the host's MPI.
#include "window_creation.h"

#include <fmt/format.h>
#include <offpath/loss.h>
#include <offpath/types.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "base/environment.h"
#include "communicators/agreeing.h"
#include "exposed_memory.h"
#include "gpu/memory.h"
#include "host_or_device.h"
#include "mixed_windows.h"
#include "program_memory/sharing.h"
#include "requests/held_calls.h"
#include "requests/offloaded_requests.h"
#include "runtime/losses.h"
#include "runtime/own_communicators.h"
#include "runtime/runtime.h"
#include "tuning/agreement.h"
#include "window_handles.h"
#include "window_locks.h"
#include "window_loss.h"

namespace offpath::mpi {
namespace {

// Why a window stays on the host.
enum class Left : std::uint8_t { no, one_node, off, asked, no_team, no_room, waiting, gpu, many, lost };
constexpr std::array<const char*, 10> reasons = {"",
                                                 "within one node",
                                                 "switched off by OFFPATH_RMA",
                                                 "asked for by the program",
                                                 "on communicators without a team",
                                                 "for which the device had no room",
                                                 "without concurrent computation",
                                                 "with GPU memory",
                                                 "beside many others",
                                                 "after a device was lost"};
// Each window on the device takes up to five of the host's communicators, of which MPICH has 2,048, where one
// of the host's takes one.
constexpr std::uint64_t most_on_device = 256;
std::atomic<std::uint64_t> made{0};
std::array<std::atomic<std::uint64_t>, reasons.size()> left{};

enum class Mode : std::uint64_t { off, remote, all, asked_host, both, turns };
constexpr std::array<std::pair<std::string_view, Mode>, 5> modes = {{{"off", Mode::off},
                                                                     {"remote", Mode::remote},
                                                                     {"all", Mode::all},
                                                                     {"both", Mode::both},
                                                                     {"turns", Mode::turns}}};

Mode read_mode() {
    const std::string text = environment::text("OFFPATH_RMA", "remote");
    for (const auto& [name, mode] : modes) {
        if (text == name) return mode;
    }
    warn(Code::setting, fmt::format("OFFPATH_RMA='{}'; accepted are off, remote, all, both and turns", text));
    PMPI_Abort(MPI_COMM_WORLD, 2);
    return Mode::off;
}

// The program's info for this window overrides the environment, except `off`.
Mode mode_of(MPI_Info info) {
    const Mode mode = read_mode();
    char value[16] = {};
    int found = 0;
    if (info != MPI_INFO_NULL) PMPI_Info_get(info, "offpath", sizeof value - 1, value, &found);
    if (found == 0 || mode == Mode::off) return mode;
    const std::string_view asked = value;
    return asked == "host" ? Mode::asked_host : asked == "device" ? Mode::all : mode;
}

// The result of the ranks' agreement before they make a window.
struct Decision {
    Left left = Left::no;
    WayRule rule = WayRule::always_device;
    bool busy = false;     // ranks were seen to compute
    bool threads = false;  // some rank has MPI_THREAD_MULTIPLE
};

// Whether this rank's operations no longer use the device.
bool has_left_device(const Window& window) {
    return window.way == Way::host && any_loss.load(std::memory_order_relaxed);
}

// Collective over `comm`. Returns the same on all ranks. `base`: null, or memory that the window exposes.
Decision decide(MPI_Comm comm, MPI_Info info, const void* base) {
    Team& team = find_team(comm);
    if (!team.served()) return {team.reason == HostReason::lost ? Left::lost : Left::no_team};
    // The first rank's mode counts, and so do the observations of all ranks.
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    std::vector<std::uint64_t> words(6);
    if (rank == 0) words[0] = static_cast<std::uint64_t>(mode_of(info));
    const presence::Reading seen = presence::seen_lately();
    words[1] = seen.counted_ns;
    words[2] = seen.counted_ns - std::min(seen.inside_ns, seen.counted_ns);
    words[3] = runtime().threads ? 1 : 0;
    words[4] = base != nullptr && gpu::is_device_memory(base) ? 1 : 0;
    words[5] = windows_served.load(std::memory_order_relaxed);
    words = combine_now(team, CombinedWords::How::largest, std::move(words));
    if (words.empty()) return {Left::no_team};
    const auto mode = static_cast<Mode>(words[0]);
    if (mode == Mode::off) return {Left::off};
    if (mode == Mode::asked_host) return {Left::asked};
    if (mode == Mode::remote && team.tuning->choices.shape().nodes == 1) return {Left::one_node};
    if (words[4] != 0) return {Left::gpu};
    if (words[5] >= most_on_device) return {Left::many};
    Decision decision;
    decision.busy = WayChoice().next({words[1], words[2]}) == Way::device;
    decision.threads = words[3] != 0;
    if (mode != Mode::all && !decision.threads)
        decision.rule = mode == Mode::turns ? WayRule::turns : WayRule::evidence;
    return decision;
}

bool is_candidate(MPI_Comm comm) {
    if (!active() || comm == MPI_COMM_NULL) return false;
    before_collective(comm);
    int inter = 0;
    return PMPI_Comm_test_inter(comm, &inter) == MPI_SUCCESS && inter == 0;
}

// Memory that the device maps, too. Null: the device has no room.
struct FreeMapped {
    void operator()(void* memory) const { offpath_mem_free(runtime().context, memory); }
};
using MappedMemory = std::unique_ptr<void, FreeMapped>;
MappedMemory map_memory(std::size_t bytes) {
    void* memory = nullptr;
    return MappedMemory(offpath_mem_alloc(runtime().context, bytes, &memory) == OFFPATH_OK ? memory
                                                                                           : nullptr);
}

// Why the device has no such window, although it should.
Left not_made() {
    const bool serves = offpath_context_device_state(runtime().context) == OFFPATH_DEVICE_SERVES;
    return serves && !any_loss.load(std::memory_order_relaxed) ? Left::no_room : Left::lost;
}

void count(MPI_Comm comm, Left why) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    if (rank != 0) return;
    (why == Left::no ? made : left[static_cast<std::size_t>(why)]).fetch_add(1, std::memory_order_relaxed);
    if (runtime().settings.verbose >= 2 && why != Left::no)
        say(fmt::format("a window on the host, {}", reasons[static_cast<std::size_t>(why)]));
}

// Collective over `comm`. Returns null if some rank could not make its part.
std::unique_ptr<Window> make(MPI_Comm comm, MPI_Info info, const Window::Traits& traits,
                             const Decision& decision) {
    auto window = std::make_unique<Window>();
    window->traits = traits;
    window->dynamic = traits.flavor == MPI_WIN_FLAVOR_DYNAMIC;
    window->comm = communicator_like(find_team(comm));
    if (window->comm == MPI_COMM_NULL) return nullptr;
    window->handle = make_handle(info);
    window->creator = &find_team(comm);
    communicator_created(window->comm);
    PMPI_Comm_rank(window->comm, &window->rank);
    PMPI_Comm_size(window->comm, &window->size);
    window->peers.resize(static_cast<std::size_t>(window->size));
    window->locks.resize(window->peers.size(), Window::Lock::none);
    const Window::Peer mine{static_cast<std::uint64_t>(traits.bytes),
                            static_cast<std::uint64_t>(traits.disp_unit)};
    static_assert(sizeof(Window::Peer) == 16);
    const bool told = PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, window->peers.data(), sizeof mine,
                                     MPI_BYTE, window->comm) == MPI_SUCCESS;
    window->team = &find_team(window->comm);
    if (all_know(window->comm, told && window->handle != MPI_WIN_NULL) &&
        open_ways(*window, decision.rule, decision.busy, decision.threads))
        return window;
    PMPI_Comm_free(&window->comm);
    if (window->handle != MPI_WIN_NULL) PMPI_Win_free(&window->handle);
    return nullptr;
}

// Collective over `comm`. Returns false if the host's MPI has to make the window. `allocated` is the window's
// memory if the front end allocated it; it then ends with the window.
bool serve(MPI_Comm comm, MPI_Info info, const Window::Traits& traits, const Decision& decision,
           void* allocated, MPI_Win* win) {
    std::unique_ptr<Window> window = make(comm, info, traits, decision);
    count(comm, window == nullptr ? not_made() : window->was_on_device ? Left::no : Left::waiting);
    if (window == nullptr) return false;
    window->counted = true;
    window->allocated = allocated;
    expose(*window, traits.base, static_cast<std::size_t>(traits.bytes));
    *win = window->handle;
    PMPI_Win_set_attr(*win, window_keyval(), window.release());
    windows_served.fetch_add(1, std::memory_order_relaxed);
    return true;
}

// Collective over `comm`. Whether the ranks want the device to serve a window.
bool is_wanted(MPI_Comm comm, MPI_Info info, Decision& decision, const void* base = nullptr) {
    decision = decide(comm, info, base);
    if (decision.left != Left::no) count(comm, decision.left);
    return decision.left == Left::no;
}

}  // namespace

MPI_Comm communicator_like(Team& team) {
    const OwnTag tag(team.id);
    if (!all_agree(team, tag.is_ours() && room_for_handle())) return MPI_COMM_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    PMPI_Comm_group(team.comm, &group);
    MPI_Comm like = own_communicator_of(group, tag);
    PMPI_Group_free(&group);
    // It stays if only some ranks have it, because freeing is collective. That is not known to happen.
    return all_agree(team, like != MPI_COMM_NULL) ? like : MPI_COMM_NULL;
}

void count_on_device(Window& window) {
    if (!window.counted || window.rank != 0) return;
    made.fetch_add(1, std::memory_order_relaxed);
    left[static_cast<std::size_t>(Left::waiting)].fetch_sub(1, std::memory_order_relaxed);
}

void count_made() {
    made.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t windows_made() {
    return made.load();
}

std::uint64_t windows_left() {
    std::uint64_t sum = 0;
    for (const auto& count : left)
        sum += count.load();
    return sum;
}

void add_window_hints(std::vector<std::string>& hints) {
    const std::uint64_t mine = left[static_cast<std::size_t>(Left::one_node)].load();
    std::uint64_t all = 0;
    PMPI_Reduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, 0, runtime().service);
    if (all > 0)
        hints.push_back(
            fmt::format("OFFPATH_RMA=both for {} window{} within a node", all, all == 1 ? "" : "s"));
}

std::string why_windows_left() {
    std::string text;
    for (std::size_t i = 1; i < reasons.size(); ++i) {
        if (left[i].load() > 0)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", left[i].load(), reasons[i]);
    }
    return text.empty() ? "decided elsewhere" : text;
}

extern "C" {

OFFPATH_API int MPI_Win_create(void* base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
                               MPI_Win* win) {
    const presence::Inside inside;
    end_sharing();
    int result = MPI_SUCCESS;
    if (info != MPI_INFO_NULL && win != nullptr &&
        made_mixed({base, size, disp_unit, MPI_WIN_FLAVOR_CREATE}, info, comm, win, result))
        return result;
    // The host's MPI reports wrong arguments.
    const auto by_host = [&] { return PMPI_Win_create(base, size, disp_unit, info, comm, win); };
    if (!is_candidate(comm) || size < 0 || disp_unit <= 0 || win == nullptr) return by_host();
    return unless_no_agreement(comm, [&]() -> int {
        Decision decision;
        const Window::Traits traits{base, size, disp_unit, MPI_WIN_FLAVOR_CREATE};
        const bool served = is_wanted(comm, info, decision, size > 0 ? base : nullptr) &&
                            serve(comm, info, traits, decision, nullptr, win);
        return served ? MPI_SUCCESS : by_host();
    });
}

OFFPATH_API int MPI_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                                 MPI_Win* win) {
    const presence::Inside inside;
    end_sharing();
    int result = MPI_SUCCESS;
    if (info != MPI_INFO_NULL && refuses_key("MPI_Win_allocate", info, comm, result)) return result;
    const auto by_host = [&] { return PMPI_Win_allocate(size, disp_unit, info, comm, baseptr, win); };
    if (!is_candidate(comm) || size < 0 || disp_unit <= 0 || baseptr == nullptr || win == nullptr)
        return by_host();
    return unless_no_agreement(comm, [&]() -> int {
        Decision decision;
        if (!is_wanted(comm, info, decision)) return by_host();
        MappedMemory mapped = map_memory(size > 0 ? static_cast<std::size_t>(size) : 1);
        if (!all_agree(find_team(comm), mapped != nullptr)) {
            count(comm, not_made());
            return by_host();
        }
        void* const base = mapped.get();
        if (!serve(comm, info, {base, size, disp_unit, MPI_WIN_FLAVOR_ALLOCATE}, decision, base, win))
            return by_host();
        *static_cast<void**>(baseptr) = mapped.release();
        return MPI_SUCCESS;
    });
}

OFFPATH_API int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
    const presence::Inside inside;
    end_sharing();
    int result = MPI_SUCCESS;
    if (info != MPI_INFO_NULL && refuses_key("MPI_Win_create_dynamic", info, comm, result)) return result;
    const auto by_host = [&] { return PMPI_Win_create_dynamic(info, comm, win); };
    if (!is_candidate(comm) || win == nullptr) return by_host();
    return unless_no_agreement(comm, [&]() -> int {
        Decision decision;
        const bool served =
            is_wanted(comm, info, decision) &&
            serve(comm, info, {nullptr, 0, 1, MPI_WIN_FLAVOR_DYNAMIC}, decision, nullptr, win);
        return served ? MPI_SUCCESS : by_host();
    });
}

OFFPATH_API int MPI_Win_attach(MPI_Win win, void* base, MPI_Aint size) {
    Window* window = find_window(win);
    if (window == nullptr) return PMPI_Win_attach(win, base, size);
    if (size < 0) return raise(*window, MPI_ERR_SIZE);
    if (size == 0) return MPI_SUCCESS;
    if (window->device != nullptr && gpu::is_device_memory(base)) {
        warn(Code::not_supported,
             fmt::format(
                 "rank {}: MPI_Win_attach: no device can use GPU memory; the info key offpath with the "
                 "value host leaves a window to the host's MPI",
                 runtime().rank));
        return raise(*window, MPI_ERR_RMA_ATTACH);
    }
    const bool on_device =
        window->device != nullptr &&
        offpath_window_attach(window->device, base, static_cast<std::size_t>(size)) == OFFPATH_OK;
    if (window->device != nullptr && !on_device && !has_left_device(*window))
        return raise(*window, MPI_ERR_RMA_ATTACH);
    if (window->host != MPI_WIN_NULL) {
        const int error = PMPI_Win_attach(window->host, base, size);
        if (error != MPI_SUCCESS && window->rule == WayRule::always_device && on_device) {
            window->outlives_no_loss = true;
        } else if (error != MPI_SUCCESS) {
            if (on_device) offpath_window_detach(window->device, base);
            return raise(*window, error);
        }
    }
    expose(*window, base, static_cast<std::size_t>(size));
    return MPI_SUCCESS;
}

OFFPATH_API int MPI_Win_detach(MPI_Win win, const void* base) {
    Window* window = find_window(win);
    if (window == nullptr) return PMPI_Win_detach(win, base);
    // An empty range was not attached.
    const bool attached = is_exposed(*window, base);
    int error = MPI_SUCCESS;
    if (attached && window->host != MPI_WIN_NULL) error = PMPI_Win_detach(window->host, base);
    if (window->device != nullptr) {
        const offpath_status_t status = offpath_window_detach(window->device, const_cast<void*>(base));
        if (status != OFFPATH_OK && status != OFFPATH_ERR_INVALID && !has_left_device(*window))
            error = error_of(status);
    }
    conceal(*window, base);
    return error == MPI_SUCCESS ? MPI_SUCCESS : raise(*window, error);
}

OFFPATH_API int MPI_Win_free(MPI_Win* win) {
    const presence::Inside inside;
    Window* window = win != nullptr ? find_window(*win) : nullptr;
    if (window == nullptr) return PMPI_Win_free(win);
    if (open_epochs(*window).to_be_ended()) return raise(*window, before_the_end(*window, "MPI_Win_free"));
    int error = MPI_SUCCESS;
    // A window that goes the host's way has nothing outstanding on the device between epochs.
    const bool on_device = window->way == Way::device;
    if (on_device) error = error_of(flush(*window, all_targets));
    finish_requests_of(*window->team);  // they are done by now; reporting an error needs the window
    // Once all ranks are here, all operations are done and nothing touches the memory any more.
    meet(*window);
    close_ways(*window);
    if (window->device != nullptr) {
        const offpath_status_t status = offpath_window_destroy(window->device);
        const bool outlived = status == OFFPATH_ERR_PEER_LOST && window->loss != nullptr;
        if (on_device && error == MPI_SUCCESS && !outlived) error = error_of(status);
    }
    window->loss.reset();
    conceal(*window);
    if (error != MPI_SUCCESS) raise(*window, error);
    if (window->mixed != nullptr) offpath_team_destroy(window->mixed);
    // The callbacks of the program's attributes may still query the window.
    window->live = false;
    outstanding.windows_ended.raise();
    ending_window = window;
    const int result = PMPI_Win_free(win);
    ending_window = nullptr;
    PMPI_Comm_free(&window->comm);
    if (window->allocated != nullptr) offpath_mem_free(runtime().context, window->allocated);
    delete window;
    windows_served.fetch_sub(1, std::memory_order_relaxed);
    return error != MPI_SUCCESS ? error : result;
}

}  // extern "C"

}  // namespace offpath::mpi
