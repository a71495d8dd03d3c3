// Windows that the device can serve. The MPI_Win that the program holds is a window of the host's MPI on this
// process alone (window_handles.h). Calls that move data or synchronise are handled here. The ranks agree on
// the device's window when it is made, and later on its way: the device, or a second window of the host's MPI
// over the same memory (host_or_device.h).
//
// Ownership: a window belongs to the MPI_Win, as an attribute, until MPI_Win_free. Threads: any; `mutex`
// guards the lists and the epochs, and is never held while a thread waits.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "communicators/communicators.h"
#include "datatypes/type_shapes.h"
#include "runtime/counter.h"
#include "runtime/staging.h"
#include "runtime/time_in_mpi.h"
#include "ways/epoch_trial.h"
#include "ways/way_choice.h"

namespace offpath::mpi {

using ways::EpochTrial;
using ways::Evidence;
using ways::Way;
using ways::WayChoice;
using ways::WayPace;

enum class WayRule : std::uint8_t;
enum class Moved : std::uint8_t { put, get };
struct WindowLoss;

struct alignas(64) Window {
    // What every call reads, in two cache lines.
    Way way = Way::device;
    bool live = true;     // until MPI_Win_free calls the program's callbacks
    bool adapts = false;  // to the time that ranks spend outside MPI (host_or_device.h)
    bool asks = false;    // some of `granted` are `asked`
    // Access epochs.
    enum class Lock : std::uint8_t { none, held, assumed };  // assumed: MPI_MODE_NOCHECK
    Lock all = Lock::none;
    bool fence = false;
    bool access = false;   // between MPI_Win_start and MPI_Win_complete
    bool exposed = false;  // the exposure epoch of MPI_Win_post
    int size = 0;
    int locked = 0;                     // targets that MPI_Win_lock has locked
    offpath_window_h device = nullptr;  // null: not made yet
    MPI_Win host = MPI_WIN_NULL;        // likewise
    Owned<WindowLoss> loss;             // null: it does not outlive a device
    // Its puts and gets while it is on the host's way (epochs.h).
    struct Epoch {
        EpochTrial* trial = nullptr;  // null: not compared
        std::uint64_t began_ticks = 0;
        std::uint32_t operations = 0;
        Way way = Way::host;
        bool touches = false;  // the device has some of them
    } epoch;
    // The trial of the latest epoch's first operation, whose arguments the next epoch mostly repeats.
    struct LatestTrial {
        EpochTrial* trial = nullptr;
        MPI_Datatype type = MPI_DATATYPE_NULL;
        int rank = 0;
        int count = 0;
        Moved kind{};
    } latest;
    std::uint64_t stall_ticks = 0;  // EpochTrial::stall_ns; 0: not known yet
    std::vector<Lock> locks;        // by target
    // By target: whether its lock is known to be held. Some MPIs ask for it with the first operation.
    enum class Granted : std::uint8_t { unknown, asked, yes };
    std::vector<Granted> granted;
    std::mutex mutex;

    MPI_Win handle = MPI_WIN_NULL;
    // For a window that may change its way (host_or_device.h).
    bool meets = false;  // in collectives on the communicator of which it was made
    WayRule rule{};
    bool host_fails = false, device_fails = false;  // to make their window
    bool was_on_device = false;
    bool outlives_no_loss = false;  // some rank cannot
    bool counted = false;           // for the summary
    WayChoice choice;
    WayPace fences;              // at which the ranks compare what they saw
    presence::Reading observed;  // since then
    std::vector<bool> near;      // by target: on this node
    std::vector<bool> touched;   // by target: it may have some of the device's
    Team* creator = nullptr;     // of the communicator that the program named; held

    // As MPI_Win_get_attr reports it.
    struct Traits {
        void* base = nullptr;
        MPI_Aint bytes = 0;
        int disp_unit = 1;
        int flavor = MPI_WIN_FLAVOR_CREATE;
        int model = MPI_WIN_UNIFIED;
    } traits;
    MPI_Comm comm = MPI_COMM_NULL;  // of our own, with the window's ranks
    Team* team = nullptr;           // that communicator's
    int rank = 0;
    // Of a window of hosts and devices (mixed_windows.h): the team of both. Targets, `rank` and `size` are
    // then about its members.
    offpath_team_h mixed = nullptr;
    std::atomic<bool> to_devices{false};
    bool dynamic = false;
    void* allocated = nullptr;  // memory that ends with the window

    struct Peer {
        std::uint64_t bytes = 0;
        std::uint64_t disp_unit = 1;
    };
    std::vector<Peer> peers;

    std::vector<int> started;          // targets of MPI_Win_start on the device
    std::vector<MPI_Request> awaited;  // in an exposure epoch: its accessors' ends
    std::vector<MPI_Request> told;

    // Memory that outstanding operations use, until a flush of their target.
    struct Held {
        int target = 0;
        StagingBlock block;
        Elements elements;  // of a result, to be unpacked to `to`; none: no shape
        void* to = nullptr;
    };
    std::vector<Held> held;
    std::size_t held_bytes = 0;
    // Flushes that have taken some of `held` and not unpacked it yet, by number. A later flush of another
    // thread, which completes the same operations, must wait for them.
    std::vector<std::uint64_t> unpacking;
    std::uint64_t unpackings = 0;
    std::size_t pieces_told = 0;  // of operations with lists of pieces, since a flush of all targets
};

// The target that the program's rank stands for; -1: there is none. `rank` must not be MPI_PROC_NULL.
inline int target_of(const Window& window, int rank) {
    if (window.mixed == nullptr) return rank;
    const int end = window.to_devices.load(std::memory_order_relaxed) ? 1 : 0;
    return rank >= 0 && rank < window.size / 2 ? 2 * rank + end : -1;
}

// A thread's latest window. Looking an attribute up in the host's MPI takes as long as a small put.
struct LatestWindow {
    MPI_Win win;
    Window* window;
    std::uint32_t ended;  // windows, until then
};
inline thread_local constinit LatestWindow latest_window{};

// Null: the window is the host's alone. Two loads while there is no window of ours.
Window* look_up_window(MPI_Win win);
inline Window* find_window(MPI_Win win) {
    const LatestWindow& latest = latest_window;
    return latest.win == win && latest.window != nullptr && latest.ended == outstanding.windows_ended
               ? latest.window
               : look_up_window(win);
}
// The same, but also works while MPI_Win_free calls the program's callbacks, when the device no longer serves
// it.
Window* record_of(MPI_Win win);
// The window that this thread's MPI_Win_free is ending; the host's MPI may delete our attribute of it first.
inline thread_local Window* ending_window = nullptr;

inline std::atomic<std::uint32_t> windows_served{0};

// Calls the window's error handler and returns what the MPI call returns.
int raise(const Window& window, int error);
// Translates a device's status to an MPI error, and reports the status.
int error_of(offpath_status_t status);
inline int first_error(int first, int second) {
    return first == MPI_SUCCESS ? second : first;
}

// Waits for a request of the device, progressing the host's MPI meanwhile, and frees it.
offpath_status_t wait_for(offpath_request_h request);

// Waits until all operations on `target` (a rank, or all_targets) are done there and results have been
// unpacked.
inline constexpr int all_targets = -1;
offpath_status_t flush(Window& window, int target);

// A barrier of the window's ranks. Pending receives are progressed meanwhile.
void meet(Window& window);

void count_one_sided(std::uint64_t bytes);
// Prints the summary's third line, like the others. Collective over the world.
bool print_one_sided_summary();
void add_window_hints(std::vector<std::string>& hints);
std::span<const Counter> one_sided_counters();

void open_windows();
void close_windows();

}  // namespace offpath::mpi
