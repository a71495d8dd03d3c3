// A counter, and instants, in memory that all ranks of one machine share. Through it they wait for each other
// without a message and without the MPI under test. All ranks make it together; one thread per rank.
//
// An MPI barrier would not do: a rank that shares its core may leave an operation of MPI whole turns after
// the others.
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

    // Returns the latest instant that a rank has named, to all ranks. Instants are not negative, and each is
    // later than what this has returned before.
    double latest(double instant);

  private:
    // Returns when every rank has called it as often as this one. Yields the core while it waits.
    void wait_for_all();

    struct Shared {
        std::atomic<std::uint64_t> arrivals;
        std::atomic<double> latest[2];  // a rank may be in the next call while another still reads
    };
    Shared* shared_;
    std::uint64_t ranks_, expected_ = 0;
    unsigned calls_ = 0;  // of latest()
};

}  // namespace mpi_bench
