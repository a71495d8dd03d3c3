// Persistent requests that offpath makes: each start begins a new operation with a request of its own.
//
// The user holds a handle of the host's MPI that is never started there, so while inactive it is what MPI
// says of an inactive request in every call. While it is active, the calls that wait, test, free or cancel
// exchange it for the request of the operation that was started (StandIns), which may be anybody's: one of
// the device, or of the host's MPI. So a persistent operation is a non-blocking one with its arguments kept.
//
// Threads: any; as in MPI, one request is in the hands of one thread at a time.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

namespace offpath::mpi {

// Starts the operation and gives its request; returns what MPI_Start returns. It ends when the user frees the
// persistent request, be the operation done or not.
using StartOperation = std::function<int(MPI_Request* started)>;

// Makes the user's handle, inactive.
int make_persistent(StartOperation start, MPI_Request* request);

inline std::atomic<std::uint32_t> persistent_requests{0};  // that exist
inline std::atomic<std::uint32_t> persistent_active{0};    // started and not seen to be done

// The user's requests with those of operations in place of active persistent ones. At the end of its life the
// user's array gets what the call made of it; a persistent request whose operation was done is inactive then.
class StandIns {
  public:
    StandIns(int count, MPI_Request* requests);
    ~StandIns();
    StandIns(const StandIns&) = delete;
    StandIns& operator=(const StandIns&) = delete;

    MPI_Request* data() { return requests_; }

  private:
    struct Exchanged {
        int index;
        MPI_Request handle;  // the user's
    };
    void exchange(int count);

    MPI_Request* const users_;
    MPI_Request* requests_;
    int count_ = 0;  // of own copies; 0: nothing was exchanged
    std::array<MPI_Request, 8> few_{};
    std::vector<MPI_Request> many_;
    std::vector<Exchanged> exchanged_;
};

// What `request` stands for now: itself, or the operation of an active persistent request.
MPI_Request stand_in_of(MPI_Request request);

}  // namespace offpath::mpi
