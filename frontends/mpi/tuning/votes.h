// Votes: how the ranks of a communicator leave the device where nothing but non-blocking collectives is
// called, in which no rank may wait for another one.
//
// Every so many calls that go to the device, the ranks start a small sum of the host's MPI, which nobody
// waits for: how many of them know of a loss. A rank that said so looks at the result at its next vote; if
// all have, each of them knows that at the same call, and the communicator is the host's from there on. So
// only a rank that knows of a loss ever waits, for ranks that are a whole vote behind. The others learn of it
// from a result that is there in time, and say so in their next vote.
//
// Ranks vote at the same calls, since they count the same ones: those that were made with the communicator's
// handle, and starts of persistent requests on MPI_COMM_WORLD. A communicator that the program may free is
// not voted on in starts, which may come after that on some ranks. Threads: as the calls of a communicator.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <deque>
#include <memory>

namespace offpath::mpi {

class Votes {
  public:
    // Between two votes.
    static constexpr std::uint64_t calls_between = 32;

    // Counts a call of the `ranks` of `comm`, on which this rank has met a loss or not. False: this one is
    // the host's, and so are all that follow.
    bool stays(bool met_loss, MPI_Comm comm, int ranks);
    // Whether none is under way.
    bool over();
    // Waits until that is so.
    void settle();

  private:
    struct Vote {
        MPI_Request request = MPI_REQUEST_NULL;
        int mine = 0, all = 0;

        bool is_over();
    };
    void take_results();

    std::uint64_t calls_ = 0;
    std::deque<std::unique_ptr<Vote>> votes_;  // under way
    bool knows_ = false;                       // of a loss, by whomever
};

}  // namespace offpath::mpi
