// Ledgers: words of each rank of a window that outlive the devices, and that the other ranks read by the
// host's MPI (a second window of the host's). They need no help of the rank's program for that, which may sit
// in any call of MPI. First come the words that the rank's device writes (offpath/loss.h). Behind them, the
// rank says which of the device's locks it holds or has asked for, by target. In the last word the other
// ranks ask for the ledger to be closed.
//
// A daemon that dies cannot write. So a thread of this process closes the ledgers of the process when its
// daemon has ended, or the link to a remote one is lost. Neither can a daemon that a signal has stopped, but
// it might continue. Where another rank asks for a ledger to be closed, the thread ends such a daemon first,
// or gives up its end of the link to a remote one that is silent. It looks for that four times a second.
//
// Threads: any.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <mutex>

namespace offpath::mpi {

struct Window;

class Ledger {
  public:
    enum class Closed : std::uint64_t {
        no,
        yes,       // the rank's device touches its memory of the window no more
        in_doubt,  // the device is lost, but may still write there
    };
    enum class Holds : std::uint64_t { no, shared, exclusive };

    // Null: some rank cannot have one. Collective over the window's communicator.
    static Ledger* make(Window& window);
    // Collective.
    ~Ledger();
    Ledger(const Ledger&) = delete;
    Ledger& operator=(const Ledger&) = delete;

    // This rank's own words.
    void close(Closed how);
    void hold(int target, Holds how);

    // Those of another rank. They wait until the host's MPI progresses there. False: the host's MPI fails.
    bool read_closed(int rank, Closed& closed);
    bool read_holds(int rank, int target, Holds& holds);
    // Asks the other rank's process to close its ledger if it can.
    bool ask_to_close(int rank);
    // Bytes of updates of this rank that the target's device has begun to apply, and has applied.
    struct Updates {
        std::uint64_t begun = 0, applied = 0;
    };
    bool read_updates(int target, Updates& updates);

  private:
    Ledger(int rank, int ranks) : rank_(rank), ranks_(ranks) {}
    void leave_to_device();
    bool read(int rank, int first, int step, int count, std::uint64_t* words);

    const int rank_, ranks_;
    std::uint64_t* words_ = nullptr;
    MPI_Win all_ = MPI_WIN_NULL;
    std::mutex reading_;  // a rank may have one lock of another one
};

// In MPI_Finalize.
void close_ledgers();

}  // namespace offpath::mpi
