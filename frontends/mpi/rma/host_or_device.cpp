#include "host_or_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "communicators/agreeing.h"
#include "epochs.h"
#include "exposed_memory.h"
#include "gpu/memory.h"
#include "p2p/parcel_progress.h"
#include "runtime/losses.h"
#include "runtime/runtime.h"
#include "tuning/agreement.h"
#include "window_creation.h"
#include "window_locks.h"
#include "window_loss.h"

namespace offpath::mpi {
namespace {

std::atomic<std::uint64_t> changes{0};

// Open MPI 4's own windows between nodes are not for several threads, and it prints that to the program's
// user.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
constexpr bool host_makes_windows_of_threads = false;
#else
constexpr bool host_makes_windows_of_threads = true;
#endif

// What a rank tells the others about a window. For each word the largest value counts.
struct WindowWord {
    enum : std::size_t { observed, outside, blocked, lost, count };
};
using Words = std::array<std::uint64_t, WindowWord::count>;

bool make_host(Window& window) {
    PMPI_Comm_set_errhandler(window.comm, MPI_ERRORS_RETURN);
    const Window::Traits& t = window.traits;
    int error = window.dynamic
                    ? PMPI_Win_create_dynamic(MPI_INFO_NULL, window.comm, &window.host)
                    : PMPI_Win_create(t.base, t.bytes, t.disp_unit, MPI_INFO_NULL, window.comm, &window.host);
    // If one rank has no window, the other ranks cannot free theirs, because freeing is collective. This leak
    // is rare.
    if (!all_agree(window.comm, error == MPI_SUCCESS)) {
        window.host = MPI_WIN_NULL;
        return false;
    }
    PMPI_Win_set_errhandler(window.host, MPI_ERRORS_RETURN);
    int* model = nullptr;
    int found = 0;
    PMPI_Win_get_attr(window.host, MPI_WIN_MODEL, static_cast<void*>(&model), &found);
    if (found == 0 || *model != MPI_WIN_UNIFIED) error = MPI_ERR_WIN;
    for (const auto& [base, bytes] : exposed_by(window)) {
        if (error == MPI_SUCCESS && window.dynamic)
            error = PMPI_Win_attach(window.host, base, static_cast<MPI_Aint>(bytes));
    }
    if (all_agree(window.comm, error == MPI_SUCCESS)) return true;
    PMPI_Win_free(&window.host);
    window.host = MPI_WIN_NULL;
    return false;
}

// Returns a flag for each rank of the communicator.
std::vector<bool> on_this_node(MPI_Comm comm) {
    int rank = 0, size = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    std::vector<int> ranks(static_cast<std::size_t>(size)), world(ranks.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    MPI_Group group = MPI_GROUP_NULL;
    PMPI_Comm_group(comm, &group);
    PMPI_Group_translate_ranks(group, size, ranks.data(), runtime().world_group, world.data());
    PMPI_Group_free(&group);
    const auto node_of = [](int world_rank) {
        return world_rank == MPI_UNDEFINED ? -1 : runtime().node_of[static_cast<std::size_t>(world_rank)];
    };
    const int mine = node_of(world[static_cast<std::size_t>(rank)]);
    std::vector<bool> near;
    for (const int each : world)
        near.push_back(node_of(each) == mine);
    return near;
}

bool make_device(Window& window) {
    const Window::Traits& t = window.traits;
    offpath_team_h team = nullptr;
    offpath_status_t status = OFFPATH_ERR_UNAVAILABLE;
    if (window.team->served()) status = device_team(*window.team, &team);
    if (status == OFFPATH_OK)
        status = window.dynamic
                     ? offpath_window_create_dynamic(team, &window.device)
                     : offpath_window_create(team, t.base, static_cast<std::size_t>(t.bytes), &window.device);
    const bool made = status == OFFPATH_OK;
    for (const auto& [base, bytes] : exposed_by(window)) {
        if (status == OFFPATH_OK && window.dynamic)
            status = gpu::is_device_memory(base) ? OFFPATH_ERR_UNSUPPORTED
                                                 : offpath_window_attach(window.device, base, bytes);
    }
    if (all_agree(window.comm, status == OFFPATH_OK)) return true;
    if (made) offpath_window_destroy(window.device);
    window.device = nullptr;
    return false;
}

void take(Window& window, Way way) {
    window.way = way;
    window.observed = presence::read();
    if (way == Way::device && !window.was_on_device) {
        window.was_on_device = true;
        count_on_device(window);
    }
}

Words told_by(Window& window, bool in_fence) {
    const presence::Reading now = presence::read();
    Words mine{};
    mine[WindowWord::observed] = now.counted_ns - window.observed.counted_ns;
    const std::uint64_t inside = now.inside_ns - window.observed.inside_ns;
    mine[WindowWord::outside] = mine[WindowWord::observed] - std::min(inside, mine[WindowWord::observed]);
    mine[WindowWord::blocked] = !in_fence && open_epochs(window).keeps_way() ? 1 : 0;
    mine[WindowWord::lost] = any_loss.load(std::memory_order_relaxed) ? 1 : 0;
    return mine;
}

// Returns the way that the ranks take from now on.
Way choose(Window& window, const std::uint64_t* all) {
    if (all[WindowWord::blocked] != 0) return window.way;
    if (all[WindowWord::lost] != 0) {
        any_loss.store(true, std::memory_order_relaxed);
        return Way::host;
    }
    if (!window.adapts) return window.way;
    if (window.rule == WayRule::turns) return window.way == Way::host ? Way::device : Way::host;
    const Evidence evidence{all[WindowWord::observed], all[WindowWord::outside]};
    if (WayChoice::is_enough(evidence)) {
        const Way next = window.choice.next(evidence);
        window.observed = presence::read();
        return next;
    }
    return window.way;
}

// Leaves the present way: completes all operations that this rank started on it.
int leave(Window& window) {
    if (window.way == Way::host) {
        const int error = complete_device_part(window, all_targets);
        window.epoch = {};
        forget_grant(window, all_targets);
        return window.all == Window::Lock::none ? error
                                                : first_error(error, PMPI_Win_unlock_all(window.host));
    }
    offpath_status_t status = flush(window, all_targets);
    offpath_status_t given = OFFPATH_OK;
    if (has_departed(window)) {
        given = unlock_departed(window, all_targets);
    } else if (window.all == Window::Lock::held) {
        given = unlock_device(window, 0, window.size - 1);
        // A lost device's lock is released.
        if (given == OFFPATH_ERR_PEER_LOST && window.loss != nullptr) given = OFFPATH_OK;
    }
    has_no_lock(window, all_targets);
    end_departure(window);
    return error_of(status == OFFPATH_OK ? given : status);
}

int enter(Window& window) {
    if (window.all == Window::Lock::none) return MPI_SUCCESS;
    if (window.way == Way::host)
        return PMPI_Win_lock_all(window.all == Window::Lock::assumed ? MPI_MODE_NOCHECK : 0, window.host);
    (void)has_lock(window, all_targets, MPI_LOCK_SHARED);  // nobody has departed here
    return window.all == Window::Lock::held ? error_of(lock_device(window)) : MPI_SUCCESS;
}

// Call it when all ranks are here and none of them uses the window meanwhile. No rank starts on the new way
// before all ranks have left the old one. No rank continues before all ranks hold their former locks again.
int change(Window& window, Way way) {
    if (!make_way(window, way)) return MPI_SUCCESS;
    int error = leave(window);
    meet(window);
    take(window, way);
    error = first_error(error, enter(window));
    meet(window);
    if (window.rank == 0) changes.fetch_add(1, std::memory_order_relaxed);
    if (window.rank == 0 && runtime().settings.verbose >= 2)
        say(fmt::format("a window of {} ranks goes on {}", window.size,
                        way == Way::host ? "by the host's MPI" : "on the device"));
    return error;
}

// From the start, puts and gets may use either way.
void adapt(Window& window) {
    if (window.rule == WayRule::evidence) make_way(window, Way::device);
    window.touched.resize(static_cast<std::size_t>(window.size));
    window.granted.resize(window.touched.size(), Window::Granted::unknown);
    window.near = on_this_node(window.comm);
    presence::begin();
    window.observed = presence::read();
}

// Returns the maximum of each word over all ranks of the window, in a fence of the window. A rank that does
// not know it must not go on (NoAgreement): the others may take another way. A second step would cost every
// fence.
Words compare(Window& window) {
    const Words mine = told_by(window, true);
    Words all{};
    MPI_Request request = MPI_REQUEST_NULL;
    int error = PMPI_Iallreduce(mine.data(), all.data(), static_cast<int>(all.size()), MPI_UINT64_T, MPI_MAX,
                                window.comm, &request);
    if (error == MPI_SUCCESS) error = p2p::wait_for_host(&request, MPI_STATUS_IGNORE);
    if (error != MPI_SUCCESS) throw NoAgreement{error};
    return all;
}

}  // namespace

bool make_way(Window& window, Way way) {
    bool& fails = way == Way::host ? window.host_fails : window.device_fails;
    const bool there = way == Way::host ? window.host != MPI_WIN_NULL : window.device != nullptr;
    if (fails || there) return there;
    const bool made = way == Way::host ? make_host(window) : make_device(window);
    fails = !made;
    if (made) prepare_for_loss(window);
    return made;
}

bool open_ways(Window& window, WayRule rule, bool busy, bool threads) {
    window.rule = rule;
    window.adapts = rule == WayRule::evidence || rule == WayRule::turns;
    const Way first =
        rule == WayRule::always_device || (busy && rule == WayRule::evidence) ? Way::device : Way::host;
    window.choice = WayChoice(first);
    window.outlives_no_loss = threads && !host_makes_windows_of_threads;
    if (make_way(window, first)) {
        take(window, first);
    } else if (const Way other = first == Way::host ? Way::device : Way::host;
               rule != WayRule::always_device && make_way(window, other)) {
        window.adapts = false;
        take(window, other);
    } else {
        return false;
    }
    if (window.adapts) adapt(window);
    // Where the device alone serves it, the host's half is there for the loss of one.
    if (rule == WayRule::always_device && !window.outlives_no_loss) make_way(window, Way::host);
    window.meets = !threads && (window.adapts || rule == WayRule::always_device);
    if (!window.meets) return true;
    Team& team = *window.creator;
    retain(team);
    if (team.meetings == nullptr) team.meetings = make_owned<WindowMeetings>();
    team.meetings->windows.push_back(&window);
    return true;
}

void close_ways(Window& window) {
    if (window.adapts) presence::end();
    if (window.meets) {
        std::erase(window.creator->meetings->windows, &window);
        release(*window.creator);
    }
    if (window.host != MPI_WIN_NULL) PMPI_Win_free(&window.host);
}

namespace {

[[gnu::hot]] int fence_agreeing(Window& window, int assertion) {
    const int closing = assertion | MPI_MODE_NOSUCCEED;
    const int opening = MPI_MODE_NOPRECEDE | (assertion & MPI_MODE_NOSUCCEED);
    const Way before = window.way;
    // All operations of an epoch between fences use the window's way.
    window.epoch = {};
    if (before == Way::host && !(window.adapts && window.fences.due()))
        return PMPI_Win_fence(assertion, window.host);

    int error = before == Way::device ? error_of(flush(window, all_targets)) : MPI_SUCCESS;
    Way next = choose(window, compare(window).data());
    if (before == Way::host && !make_way(window, next)) next = before;
    if (before == Way::host) error = PMPI_Win_fence(next == before ? assertion : closing, window.host);
    if (next == before) return error;
    window.fences.restart();
    error = first_error(error, change(window, next));
    return window.way == Way::host ? first_error(error, PMPI_Win_fence(opening, window.host)) : error;
}

void change_ways(Team& team) {
    WindowMeetings& meetings = *team.meetings;
    std::vector<std::uint64_t> mine;
    mine.reserve(meetings.windows.size() * WindowWord::count);
    for (Window* window : meetings.windows) {
        const Words told = told_by(*window, false);
        mine.insert(mine.end(), told.begin(), told.end());
    }
    const std::vector<std::uint64_t> all = combine_now(team, CombinedWords::How::largest, std::move(mine));
    if (all.empty()) return;
    std::vector<std::pair<Window*, int>> failed;
    for (std::size_t i = 0; i < meetings.windows.size(); ++i) {
        Window& window = *meetings.windows[i];
        const Way next = choose(window, all.data() + i * WindowWord::count);
        if (next == window.way) continue;
        meetings.pace.restart();
        if (const int error = change(window, next); error != MPI_SUCCESS) failed.emplace_back(&window, error);
    }
    // Errors are reported last, and only if the window still exists, because a program's error handler may
    // free windows.
    for (const auto& [window, error] : failed) {
        const auto& present = meetings.windows;
        if (std::find(present.begin(), present.end(), window) != present.end()) raise(*window, error);
    }
}

}  // namespace

int fence_either_way(Window& window, int assertion) {
    try {
        return fence_agreeing(window, assertion);
    } catch (const NoAgreement& why) {
        say_no_agreement(window.comm, why);
        return why.error;
    }
}

int meet_for_windows(Team& team, MPI_Comm comm, bool costs_nothing, bool& met) {
    const WindowMeetings& meetings = *team.meetings;
    if (meetings.windows.empty() || !(costs_nothing || team.meetings->pace.due())) return MPI_SUCCESS;
    met = true;
    const int error = unless_no_agreement(comm, [&] {
        change_ways(team);
        return MPI_SUCCESS;
    });
    if (error != MPI_SUCCESS) lose_agreement(team, error);
    return error;
}

std::uint64_t ways_changed() {
    return changes.load();
}

}  // namespace offpath::mpi
