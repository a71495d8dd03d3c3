#include "epochs.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/clock.h"
#include "datatypes/datatypes.h"
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
    const auto magnitude = static_cast<std::size_t>(std::bit_width(bytes));
    const std::size_t at = std::min(magnitude, magnitudes - 1);
    EpochTrial* of_group = &trials[group * magnitudes];
    for (std::size_t apart = 1; of_group[at].is_fresh() && apart < magnitudes; ++apart) {
        if (at >= apart && of_group[at - apart].is_decided()) {
            of_group[at].follow(of_group[at - apart]);
        } else if (at + apart < magnitudes && of_group[at + apart].is_decided()) {
            of_group[at].follow(of_group[at + apart]);
        }
    }
    return of_group[at];
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

Way way_of(Window& window, Moved kind, int rank, int count, MPI_Datatype type) {
    Window::Epoch& epoch = window.epoch;
    if (!window.adapts || window.device == nullptr || any_loss.load(std::memory_order_relaxed) ||
        !is_target(window, rank) || count < 0 || type == MPI_DATATYPE_NULL)
        return Way::host;
    const auto at = static_cast<std::size_t>(rank);
    const bool may = may_take_device(window, rank);
    if (epoch.operations++ == 0) {
        epoch.trial = nullptr;
        epoch.way = Way::host;
        if (may) {
            epoch.trial = &trial_of(window, kind, rank, static_cast<std::size_t>(count) * type_bytes(type));
            epoch.way = epoch.trial->next();
            epoch.began_ns = now_ns();
        }
    }
    if (may && epoch.way == Way::device) {
        window.touched[at] = epoch.touches = true;
        return Way::device;
    }
    if (window.granted[at] == Window::Granted::unknown) {
        window.granted[at] = Window::Granted::asked;
        window.asks = true;
    }
    return Way::host;
}

int complete_device_part(Window& window, int target) {
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

void end_epoch(Window& window, int target) {
    Window::Epoch& epoch = window.epoch;
    if (epoch.trial != nullptr) epoch.trial->ended(epoch.way, epoch.operations, now_ns() - epoch.began_ns);
    epoch.trial = nullptr;
    epoch.operations = 0;
    if (!window.asks) return;
    if (target == all_targets) window.asks = false;
    for_targets(window, target, [&](std::size_t at) {
        if (window.granted[at] == Window::Granted::asked) window.granted[at] = Window::Granted::yes;
    });
}

void forget_grant(Window& window, int target) {
    if (!window.adapts) return;
    for_targets(window, target, [&](std::size_t at) { window.granted[at] = Window::Granted::unknown; });
}

}  // namespace offpath::mpi
