// Small messages: what pairs of ranks below the switch-over send each other through the host's MPI.
//
// All communicators of the job share one communicator of ours, because the host's MPI may have few of them
// (MPICH has 2,048). The tag of a message says to which of the user's communicators it belongs. The receiver
// chooses that tag, so that it differs among the receiver's own communicators; the ranks tell each other
// their tags when a communicator is made. Messages of one communicator and lane between two ranks have one
// tag, and thus keep their order.
//
// A tag is given back with the last use of its communicator. Every message with it has been received by then,
// unless an operation failed; such a tag is never used again. Threads: any.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace offpath::mpi {

// Messages of persistent operations, which ranks may start in different orders, have tags of their own: the
// communicator's, on another lane. There are as many lanes as the host's MPI has room for in its tags.
class SmallLane {
  public:
    SmallLane() = default;  // of the communicator's other operations
    static SmallLane of_persistent(std::uint64_t number);

    // False: there is none left.
    bool usable() const { return first_tag_ >= 0; }
    int first_tag() const { return first_tag_; }

  private:
    int first_tag_ = 0;
};

// A rank of a communicator, as its small messages address it.
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

    // Collective over `comm`, whose ranks are `world_ranks`. True on all of them if all said `good` and all
    // had a tag left.
    bool open(MPI_Comm comm, const std::vector<int>& world_ranks, bool good);

    int receive(void* elements, int count, MPI_Datatype type, int source, SmallLane lane,
                MPI_Request* request) const;
    int send(const void* elements, int count, MPI_Datatype type, int dest, SmallLane lane,
             MPI_Request* request) const;

    // An operation failed, and one of its messages may still be pending.
    void never_reuse_tag() { reusable_.store(false, std::memory_order_relaxed); }

  private:
    int tag_ = -1;  // of messages to this rank; negative: none
    std::atomic<bool> reusable_{true};
    std::vector<SmallPeer> peers_;
};

// The job's communicator for them. Collective over the world.
void open_small_messages();
void close_small_messages();

}  // namespace offpath::mpi
