// StagedQueue: the staged transfers of one session, from their start to their completion. Each kind of
// StagedTransfers has one. It takes pieces from the transfers that wait, moves them in its own way, and says
// when a piece is over.
//
// Ownership: it owns the transfers. Threads: the proxy's. Completions are called by call_finished() only.
#pragma once

#include "memory/staged_transfers.h"

#include <array>
#include <deque>
#include <vector>

namespace offpath::memory {

struct StagedTransfer {
    StagingDirection direction = StagingDirection::to_device;
    std::uint64_t host_address = 0;
    std::byte* local = nullptr;
    std::size_t bytes = 0;
    Completion* completion = nullptr;
    std::uint64_t copy_to = 0;  // of a copy within the client's memory
    std::size_t issued = 0;
    std::uint32_t pieces = 0;  // in flight
    Status status = Status::ok;

    std::size_t left() const { return bytes - issued; }
};

class StagedQueue {
  public:
    // in_progress, or the reason of stop().
    Status start(const StagedTransfer& transfer);
    // The first transfer in this direction that has bytes to issue; null: there is none.
    StagedTransfer* next(StagingDirection direction) const;
    // The next `bytes` of a transfer that next() returned are in flight, as one piece.
    void issue(StagedTransfer& transfer, std::size_t bytes);
    void piece_over(StagedTransfer& transfer);
    // The transfer ends with `status`, once its pieces are over, unless it failed before. Its other bytes are
    // not issued. Call piece_over() afterwards.
    void fail(StagedTransfer& transfer, Status status);
    // Ends every transfer that has no piece in flight, and accepts no more.
    void stop(Status reason);
    // Calls the completions of the transfers that are over. These may start new ones.
    void call_finished();

    std::size_t live() const { return live_; }  // transfers whose completion has not been called
    std::size_t finished() const { return finished_.size(); }

  private:
    std::deque<StagedTransfer*>& waiting(StagingDirection direction) {
        return waiting_[static_cast<std::size_t>(direction) - 1];
    }
    void retire_if_over(StagedTransfer& transfer);

    std::array<std::deque<StagedTransfer*>, 3> waiting_;  // have bytes to issue, by direction
    std::vector<StagedTransfer*> finished_;
    std::deque<StagedTransfer> transfers_;
    std::vector<StagedTransfer*> stock_;
    Status stopped_ = Status::ok;  // not ok: what new transfers end with
    std::size_t live_ = 0;
};

}  // namespace offpath::memory
