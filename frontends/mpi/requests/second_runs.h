// Second runs: collectives whose device was lost, run again by messages of the host's MPI between the ranks
// of their communicator. All ranks have agreed that none has given its program a result, and that all data to
// send are as they were (runtime/departure.h), so even a reduction happens exactly once.
//
// The messages have a communicator and tags of their own. Whatever collectives of the host's MPI the program
// has started meanwhile, and in which order, they are not matched with them. The runs of a communicator
// follow each other in the order of its collectives, so their messages are matched in order.
//
// A reduction divides its operands among the ranks. Each rank gets its part of all operands and combines them
// in the order of the ranks; then the results go to where they belong.
//
// If some ranks have a result that is the same for all, one of them may give it (given_results.h).
//
// A start of a persistent collective that comes after its ranks have left the device runs in the same way, on
// tags of its own: ranks may start persistent collectives in different orders, which collectives of the
// host's MPI would not allow. Such a reduction has one step (one_step_reduction.h). This moves more bytes if
// there are many ranks.
//
// Threads: one at a time. Nothing here blocks.
#pragma once

#include <mpi.h>
#include <offpath/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "communicators/small_messages.h"
#include "device_part.h"

namespace offpath::mpi {

struct OffloadedRequest;
class OneStepReduction;

// Copies the operands of a short reduction in place before the device is told of it, which overwrites them. A
// second run sends the copy.
inline constexpr std::size_t most_kept_operand_bytes = 16 << 10;
void keep_operands(OffloadedRequest& operation);
// Whether the operands of a reduction are as they were, or copied. True for all other collectives.
bool has_operands(const OffloadedRequest& operation);

class SecondRun {
  public:
    // Throws std::bad_alloc.
    explicit SecondRun(const OffloadedRequest& operation);
    // Cancels what has not arrived.
    ~SecondRun();
    SecondRun(const SecondRun&) = delete;
    SecondRun& operator=(const SecondRun&) = delete;

    // Makes a step. in_progress, ok, or peer_lost: the host's MPI has reported an error.
    offpath_status_t progress();
    // The last time that a message was found to have arrived or gone.
    std::uint64_t moved_ns() const { return moved_ns_; }

  private:
    // Whether the peer has its result, and so takes no part. What it has sent to this rank has arrived,
    // unless that was small: the run fails then.
    bool is_over_at(int peer, std::size_t arriving_bytes);
    // Whether another rank gives this one the result. Receives it.
    bool is_given();
    void send(int to, const void* bytes, std::size_t count);
    void receive(int from, void* bytes, std::size_t count);
    void start();
    void start_rooted();
    void exchange_operands();
    void combine_and_spread();
    std::size_t first_element(int rank) const;
    bool has_result() const;
    void combine(int first, int last);
    std::byte* operand_of(int rank) {
        return operands_.data() + static_cast<std::size_t>(rank) * part_bytes_;
    }

    const OffloadedRequest& operation_;
    const int rank_, ranks_;
    const SmallLane lane_;
    std::unique_ptr<OneStepReduction> one_step_;
    std::vector<MPI_Request> receives_, sends_;
    bool failed_ = false, spread_ = false;
    std::uint64_t moved_ns_;
    std::vector<std::byte> given_;  // the message with the result
    // Of a reduction: this rank's part of the operands, by rank.
    std::size_t extent_ = 0, part_bytes_ = 0;
    std::vector<std::byte> operands_;
};

// Whether the operation has what a second run needs, and its data are as they were when it was started.
bool can_run_again(const OffloadedRequest& operation);

}  // namespace offpath::mpi
