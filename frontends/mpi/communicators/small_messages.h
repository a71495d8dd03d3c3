// Small messages: pairs of ranks below the switch-over send them through the host's MPI.
//
// All communicators of the job share one communicator of the front end, because the host's MPI may have few
// of them (MPICH has 2,048). The tag of a message identifies the user's communicator. The receiver chooses
// the tag, so that it differs among the receiver's own communicators; the ranks exchange their tags when a
// communicator is made. All messages of one communicator and lane between two ranks have the same tag, and
// thus keep their order.
//
// A tag is released with the last use of its communicator. Every message with it has been received by then,
// unless an operation failed; such a tag is never used again. Threads: any.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace offpath::mpi {

// Ranks may start persistent operations in different orders, so their messages have their own tags: the
// communicator's tag on another lane. There are as many lanes as the tags of the host's MPI allow.
class SmallLane {
  public:
    SmallLane() = default;  // for the communicator's other operations
    static SmallLane of_persistent(std::uint64_t number);
    // For a persistent collective once its communicator has left a lost device: none of its messages meets
    // one of a start that was lost.
    SmallLane after_loss() const;
    // For collectives whose device was lost (requests/second_runs.h).
    static SmallLane of_second_runs();
    // For what ranks agree on (combined_words.h).
    static SmallLane of_agreements();
    // The same where they agree while other operations go on (tuning/posted_agreement.h).
    static SmallLane of_posted_agreements();
    // For results that ranks give each other (requests/given_results.h).
    static SmallLane of_given_results();

    // False: no lane is left.
    bool usable() const { return first_tag_ >= 0; }
    int first_tag() const { return first_tag_; }
    MPI_Comm comm() const;

  private:
    static SmallLane numbered(std::uint64_t number);

    int first_tag_ = 0;
    bool after_loss_ = false;
};

// A rank of a communicator, as small messages address it.
struct SmallPeer {
    int world_rank;
    int tag;  // of messages to it
};

class SmallMessages {
  public:
    SmallMessages() = default;
    ~SmallMessages();
    SmallMessages(const SmallMessages&) = delete;
    SmallMessages& operator=(const SmallMessages&) = delete;

    // The tag of messages to this rank, for the other ranks to know. Negative: there is none left.
    int take_tag();
    // By rank of the communicator, as all ranks have told each other. Call it before any message.
    void address(std::vector<SmallPeer> peers) { peers_ = std::move(peers); }
    const std::vector<SmallPeer>& peers() const { return peers_; }

    int receive(void* elements, int count, MPI_Datatype type, int source, SmallLane lane,
                MPI_Request* request) const;
    int send(const void* elements, int count, MPI_Datatype type, int dest, SmallLane lane,
             MPI_Request* request) const;

    // An operation has failed, and one of its messages may still be pending.
    void never_reuse_tag() { reusable_.store(false, std::memory_order_relaxed); }

  private:
    int tag_ = -1;  // of messages to this rank; negative: none
    std::atomic<bool> reusable_{true};
    std::vector<SmallPeer> peers_;
};

// Makes the job's communicator for small messages. Collective over the world.
void open_small_messages();
void close_small_messages();

}  // namespace offpath::mpi
