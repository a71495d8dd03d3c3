// Combined words: numbers that all ranks of a team have, combined to one result that all of them know.
//
// They are small messages on a communicator of our own (small_messages.h), up and down a tree of the ranks.
// The program's communicator therefore makes no collective of ours, and its error handler is left alone.
//
// Every rank makes the same number of steps. What a rank receives in a step, other ranks have sent in their
// step before. So where all ranks have begun one call before any of them makes the next one, and each call
// makes one step, a step waits for nothing but messages that are on their way.
//
// A rank that cannot receive what others have says so on the way up, and no rank then has a result. A rank
// that cannot receive the result does not know what the others know (NoAgreement). It tells those that it
// should have passed the result on to.
//
// Threads: one at a time. Operations of one team must come in the same order on all its ranks.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "communicators.h"
#include "small_messages.h"

namespace offpath::mpi {

// Thrown where a rank cannot know what the others have agreed on. `error` is the host's MPI's.
struct NoAgreement {
    int error;
};

class CombinedWords {
  public:
    enum class How : std::uint8_t { sum, largest };

    // Begins. `mine` has as many words on all ranks. The team must outlive the operation. Operations of one
    // lane follow each other: none begins on any rank before that rank has made the last step of the others.
    CombinedWords(Team& team, How how, std::vector<std::uint64_t> mine,
                  SmallLane lane = SmallLane::of_agreements());
    // Before the last step: what was still to come is not received.
    ~CombinedWords();
    CombinedWords(const CombinedWords&) = delete;
    CombinedWords& operator=(const CombinedWords&) = delete;

    // Makes one step. True: it was the last one.
    bool step();
    // Makes the steps that need not wait. True: the last one was among them.
    bool advance();
    // The words of all ranks once the last step is made. Nothing, alike on all ranks: there is no result.
    // Throws NoAgreement.
    std::optional<std::span<const std::uint64_t>> result() const;

  private:
    enum Verdict : std::uint64_t { good, failed, unknown };

    struct Incoming {
        std::vector<std::uint64_t> words;
        MPI_Request request;
    };

    bool ended() const { return next_step_ > 2 * tree_depth_; }
    bool goes_up() const { return next_step_ == tree_depth_ - own_depth_; }
    bool comes_down() const { return next_step_ == tree_depth_ + own_depth_; }
    void post_receives();
    void receive_from(int rank);
    void send_to(int rank, const std::vector<std::uint64_t>& words);
    void conclude_step();
    void combine(const Incoming& from_child);
    void note(int error);

    Team& team_;
    How how_;
    SmallLane lane_;
    int first_child_, end_of_children_;
    int own_depth_, tree_depth_;
    int next_step_ = 0;
    std::vector<std::uint64_t> words_;  // and the verdict, at the end
    std::vector<Incoming> incoming_;    // of the next step
    std::vector<std::uint64_t> up_;     // what was sent up
    std::vector<MPI_Request> outgoing_;
    int error_ = MPI_SUCCESS;
};

// All steps at once: the result for all ranks of `team`, as result() returns it. Empty: there is none.
std::vector<std::uint64_t> combine_now(Team& team, CombinedWords::How how, std::vector<std::uint64_t> mine);

}  // namespace offpath::mpi
