// How a window outlives the loss of a device. Its ranks need not meet for that. A rank *departs* when an
// operation or a lock of it ends with the loss: it keeps the arguments of all operations that are not known
// to be done, and executes them on the host's half of the window, which exists from the start. From then on
// it uses the host's half alone. Where all ranks meet, the window takes the host's way on all of them
// (host_or_device.h).
//
// A rank reaches for a target by the host's MPI only once the target's ledger is closed, so no device touches
// that memory any more (ledgers.h):
//
//   put, get    run again, in passive epochs of the host's MPI. MPI has kept their data as they were
//   updates     run again from the first byte that the ledger does not name. If the device ended in the
//               middle of a piece, or has fetched what was not delivered, the call that completes the update
//               returns an error
//   locks       that this rank holds become locks of the host. A new lock waits until no rank holds one of
//               the device that excludes it; the ranks' ledgers say so
//   epochs      of fences, and of post and start: each operation has a passive epoch of its own. The
//               synchronisation is by messages of the host's MPI in any case
//
// A daemon that a signal has stopped is ended first. No window outlives a device that hangs otherwise,
// because that may still write memory. Windows of hosts and devices do not outlive a device.
//
// Threads: any. With MPI_THREAD_MULTIPLE, LossGuard makes steps of this rank that belong together one step:
// an operation is posted and noted, a flush is posted and takes its number, a departure runs everything
// again. No thread holds it while it waits for a lock that another rank may hold.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "ledgers.h"
#include "one_sided_operation.h"
#include "runtime/runtime.h"

namespace offpath::mpi {

struct WindowLoss {
    struct Unfinished {
        OneSidedOperation operation;
        const char* call = nullptr;
        offpath_request_h device = nullptr;  // null: a flush completes it
        std::uint64_t update_end = 0;        // of an update: `updated` of the target, with it
        std::uint64_t number = 0;            // among all operations of this rank
        bool again = false;                  // it has run again
    };

    // A put or a get of plain bytes to one piece of the target, which a flush completes. Most operations are
    // such, so a record is small.
    struct Move {
        void* address = nullptr;
        std::uint64_t bytes = 0, offset = 0;
        int target = 0;
        OneSidedOperation::Kind kind{};
        std::uint64_t number = 0;  // as above
    };

    WindowLoss(Ledger* its_ledger, std::size_t ranks)
        : ledger(its_ledger), updated(ranks), closed(ranks), granted(ranks), host_locks(ranks) {}

    std::recursive_mutex mutex;  // see LossGuard
    std::unique_ptr<Ledger> ledger;
    std::uint64_t operations = 0;  // noted so far
    // On the device, in the order of the calls.
    std::vector<Move> moves;
    std::vector<Unfinished> unfinished;  // the others
    std::atomic<bool> departed{false};
    std::vector<std::uint64_t> updated;  // by target: bytes of all updates that went to its device
    std::vector<bool> closed;            // by target: its ledger is
    std::vector<int> granted;            // by target: the type of the lock on the device, or 0
    std::vector<bool> host_locks;        // by target: locked on the host's half since this rank has departed
    bool host_lock_all = false;
};

// Keeps this process's other threads from the window's record, if there can be any.
class LossGuard {
  public:
    explicit LossGuard(const Window& window)
        : loss_(runtime().threads && window.loss != nullptr ? window.loss.get() : nullptr) {
        if (loss_ != nullptr) loss_->mutex.lock();
    }
    ~LossGuard() { unlock(); }
    LossGuard(const LossGuard&) = delete;
    LossGuard& operator=(const LossGuard&) = delete;
    void unlock() {
        if (loss_ != nullptr) loss_->mutex.unlock();
        loss_ = nullptr;
    }

  private:
    WindowLoss* loss_;
};

// Makes the window one that outlives a device, if it has both ways and all ranks can. Collective.
void prepare_for_loss(Window& window);

inline bool has_departed(const Window& window) {
    return window.loss != nullptr && window.loss->departed.load(std::memory_order_acquire);
}

// Notes an operation that the device has accepted. This and note_unfinished() need the guard, which the
// caller has held since before it called the device.
inline void note_move(Window& window, WindowLoss::Move&& move) {
    move.number = ++window.loss->operations;
    window.loss->moves.push_back(move);
}
// The same for one that is no such move. `device`: its request, or null.
void note_unfinished(Window& window, OneSidedOperation&& operation, const char* call,
                     offpath_request_h device);
// The number of the latest operation. A flush takes it under the guard, together with the device's flush.
inline std::uint64_t latest_operation(const Window& window) {
    return window.loss != nullptr ? window.loss->operations : 0;
}
// A flush of the target, which may be all_targets, and of operations up to `latest`, has ended well. Returns
// the status of the operations with requests, which it does not tell.
offpath_status_t note_flushed(Window& window, int target, std::uint64_t latest);
// An operation with a request has ended. Returns whether it has run again.
bool note_ended(Window& window, offpath_request_h device);

// After `status` from the device. Returns it, unless it is a loss that the window outlives: then this rank
// has departed, and all its operations are done.
offpath_status_t depart_after(Window& window, offpath_status_t status);

// On the host's half, once this rank has departed. The operation is done, or a flush completes it.
offpath_status_t start_departed(Window& window, const OneSidedOperation& operation, bool waits);
offpath_status_t flush_departed(Window& window, int target);
offpath_status_t lock_departed(Window& window, int type, int target, int assertion);
offpath_status_t lock_all_departed(Window& window, int assertion);
offpath_status_t unlock_departed(Window& window, int target);
// The device's locks, for the other ranks. `type` as in MPI_Win_lock, 0: none. `target` may be all_targets.
void ask_for_lock(Window& window, int target, int type);
// The device has granted the lock. If another thread has departed meanwhile, it becomes one of the host's.
offpath_status_t has_lock(Window& window, int target, int type);
void has_no_lock(Window& window, int target);
// All ranks take the host's way.
void end_departure(Window& window);

// How many operations of this rank have run again.
std::uint64_t run_again();

}  // namespace offpath::mpi
