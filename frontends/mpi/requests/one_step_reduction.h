// One-step reductions: a start of a persistent reduction that is the host's (second_runs.h). While its rank
// is in a blocking call of the host's MPI, nothing here makes a second step. So a rank sends its operand at
// the start, to every rank whose result needs it, and the ranks with a result combine the operands in the
// order of the ranks as they come.
//
// Memory does not grow with the ranks. A rank that sends copies its operand, and its start may end before the
// copy has left (leaving_messages.h): the receiver may be in a blocking call that waits for this rank. The
// next start of the operation ends only after that. A rank with a result has two pieces more, in which
// operands arrive; so large operands go in pieces.
//
// Threads: one at a time. Nothing here blocks.
#pragma once

#include <mpi.h>
#include <offpath/types.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "communicators/small_messages.h"

namespace offpath::mpi {

struct LeavingMessages;
struct OffloadedRequest;

class OneStepReduction {
  public:
    // Sends the operand from `operand`. Throws std::bad_alloc, before it has sent anything.
    OneStepReduction(const OffloadedRequest& operation, SmallLane lane, const void* operand);
    // Cancels what has not arrived.
    ~OneStepReduction();
    OneStepReduction(const OneStepReduction&) = delete;
    OneStepReduction& operator=(const OneStepReduction&) = delete;

    // Goes on as far as it can. `moved`: whether a message was found to have arrived. in_progress, ok, or
    // peer_lost: the host's MPI has reported an error.
    offpath_status_t progress(bool& moved);

  private:
    bool needs_operand(int rank, int of) const;
    void send_operand();
    // Begins to obtain the piece of rank `from_`.
    void obtain();
    // The piece of rank `from_` is there.
    void take();

    const OffloadedRequest& operation_;
    const int rank_, ranks_;
    const SmallLane lane_;
    const std::byte* operand_;
    std::size_t extent_, bytes_, piece_bytes_;
    int last_ = -1;  // the last rank whose operand the result needs; -1: there is no result here
    std::unique_ptr<LeavingMessages> sent_;
    // Where it is: the piece, and the rank whose operand comes next.
    std::size_t begin_ = 0, now_bytes_ = 0;
    int from_ = 0;
    MPI_Request receive_ = MPI_REQUEST_NULL;
    std::vector<std::byte> sum_, next_;
    bool failed_ = false;
};

}  // namespace offpath::mpi
