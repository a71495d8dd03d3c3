#include "epochs.h"

#include <algorithm>
#include <array>
#include <bit>

#include "datatypes/known_types.h"
#include "runtime/losses.h"
#include "runtime/runtime.h"
#include "window_locks.h"

namespace offpath::mpi {
namespace {

// One trial for each kind of operation, each binary magnitude of the bytes, and targets on this node or
// elsewhere.
constexpr std::size_t magnitudes = 48;
std::array<EpochTrial, 4 * magnitudes> trials;

EpochTrial& trial_of(const Window& window, Moved kind, int rank, std::size_t bytes) {
    const std::size_t group =
        (kind == Moved::get ? 2U : 0U) + (window.near[static_cast<std::size_t>(rank)] ? 1U : 0U);
    return trials[group * magnitudes +
                  std::min(static_cast<std::size_t>(std::bit_width(bytes)), magnitudes - 1)];
}

// A trial without a result of its own begins with that of the nearest size in its group.
void follow_a_neighbour(EpochTrial& trial) {
    const auto place = static_cast<std::size_t>(&trial - trials.data());
    const std::size_t at = place % magnitudes;
    const EpochTrial* of_group = &trials[place - at];
    for (std::size_t apart = 1; trial.is_fresh() && apart < magnitudes; ++apart) {
        if (at >= apart && of_group[at - apart].is_decided()) {
            trial.follow(of_group[at - apart]);
        } else if (at + apart < magnitudes && of_group[at + apart].is_decided()) {
            trial.follow(of_group[at + apart]);
        }
    }
}

// The trial for an epoch that begins with this operation.
EpochTrial& begin_trial(Window& window, Moved kind, int rank, int count, MPI_Datatype type) {
    Window::LatestTrial& latest = window.latest;
    if (latest.trial == nullptr || latest.rank != rank || latest.count != count || latest.kind != kind ||
        latest.type != type) {
        const std::size_t bytes = static_cast<std::size_t>(count) * bytes_of_type(type);
        latest = {&trial_of(window, kind, rank, bytes), type, rank, count, kind};
        // A handle of the program may name another type later.
        if (known_bytes(type) == KnownType::unknown) latest.count = -1;
    }
    if (latest.trial->is_fresh()) follow_a_neighbour(*latest.trial);
    return *latest.trial;
}

// Whether this rank holds a lock that excludes others, or one that the program declares unnecessary.
bool may_take_device(Window& window, int rank) {
    const auto at = static_cast<std::size_t>(rank);
    const Window::Lock lock = window.all != Window::Lock::none ? window.all : window.locks[at];
    return lock == Window::Lock::assumed ||
           (lock == Window::Lock::held && window.granted[at] == Window::Granted::yes);
}

template <typename Change>
void for_targets(const Window& window, int target, Change change) {
    const int first = target == all_targets ? 0 : target;
    const int last = target == all_targets ? window.size - 1 : target;
    for (int rank = first; rank <= last && is_target(window, rank); ++rank)
        change(static_cast<std::size_t>(rank));
}

}  // namespace

[[gnu::hot]] Way way_of(Window& window, Moved kind, int rank, int count, MPI_Datatype type) {
    Window::Epoch& epoch = window.epoch;
    if (!window.adapts || window.device == nullptr || !is_target(window, rank) || count < 0 ||
        type == MPI_DATATYPE_NULL)
        return Way::host;
    const auto at = static_cast<std::size_t>(rank);
    const bool may = may_take_device(window, rank);
    if (epoch.operations++ == 0) {
        epoch.trial = nullptr;
        epoch.way = Way::host;
        if (may) {
            epoch.trial = &begin_trial(window, kind, rank, count, type);
            epoch.way = epoch.trial->next();
            epoch.began_ticks = presence::call_began();
        }
    }
    if (may && epoch.way == Way::device && !any_loss.load(std::memory_order_relaxed)) {
        window.touched[at] = epoch.touches = true;
        return Way::device;
    }
    if (window.granted[at] == Window::Granted::unknown) {
        window.granted[at] = Window::Granted::asked;
        window.asks = true;
    }
    return Way::host;
}

[[gnu::hot]] int complete_device_part(Window& window, int target) {
    if (!window.epoch.touches) return MPI_SUCCESS;
    if (target == all_targets) {
        std::fill(window.touched.begin(), window.touched.end(), false);
        window.epoch.touches = false;
    } else if (is_target(window, target)) {
        if (!window.touched[static_cast<std::size_t>(target)]) return MPI_SUCCESS;
        window.touched[static_cast<std::size_t>(target)] = false;
    }
    return error_of(flush(window, target));
}

[[gnu::hot]] void record_epoch(Window& window) {
    Window::Epoch& epoch = window.epoch;
    if (window.stall_ticks == 0) window.stall_ticks = presence::ticks_of(EpochTrial::stall_ns);
    epoch.trial->ended(epoch.way, epoch.operations, presence::ticks_since(epoch.began_ticks),
                       window.stall_ticks);
    epoch.trial = nullptr;
}

[[gnu::hot]] void note_grants(Window& window, int target) {
    if (target == all_targets) window.asks = false;
    for_targets(window, target, [&](std::size_t at) {
        if (window.granted[at] == Window::Granted::asked) window.granted[at] = Window::Granted::yes;
    });
}

[[gnu::hot]] void forget_grant(Window& window, int target) {
    if (!window.adapts) return;
    for_targets(window, target, [&](std::size_t at) { window.granted[at] = Window::Granted::unknown; });
}

}  // namespace offpath::mpi
