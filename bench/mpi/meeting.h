// A counter in memory that all ranks of one machine share. Through it they wait for each other without a
// message and without the MPI under test. All ranks make it together; one thread per rank.
//
// An MPI barrier is not possible here: between posting and computing, no MPI call may be made, because it
// would progress the library.
#pragma once

#include <atomic>
#include <cstdint>

namespace mpi_bench {

class Meeting {
  public:
    // Collective over MPI_COMM_WORLD. Throws std::system_error if the ranks cannot share memory.
    Meeting();
    ~Meeting();
    Meeting(const Meeting&) = delete;
    Meeting& operator=(const Meeting&) = delete;

    // Returns when every rank has called it as often as this one. Yields the core while it waits.
    void wait_for_all();

  private:
    std::atomic<std::uint64_t>* arrivals_;
    std::uint64_t ranks_, expected_ = 0;
};

}  // namespace mpi_bench
