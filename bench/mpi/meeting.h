// A counter in memory that all ranks of one machine share, by which they wait for each other without a
// message and without the MPI under test. Made by all ranks together; one thread per rank.
//
// An MPI barrier will not do here: between posting and computing no MPI call may be made, since it would make
// the library's progress for it.
#pragma once

#include <atomic>
#include <cstdint>

namespace mpi_bench {

class Meeting {
  public:
    // Collective over MPI_COMM_WORLD. Throws std::system_error where the ranks cannot share memory.
    Meeting();
    ~Meeting();
    Meeting(const Meeting&) = delete;
    Meeting& operator=(const Meeting&) = delete;

    // Returns when every rank has called it as often as this one has. Gives the core away while it waits.
    void wait_for_all();

  private:
    std::atomic<std::uint64_t>* arrivals_;
    std::uint64_t ranks_, expected_ = 0;
};

}  // namespace mpi_bench
