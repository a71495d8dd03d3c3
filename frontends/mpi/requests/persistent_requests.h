// Persistent requests of offpath: each start begins a new operation with its own request.
//
// The user holds a handle of the host's MPI that is never started there. While the request is inactive, the
// handle therefore behaves as MPI requires in every call. While it is active, the calls that wait, test, free
// or cancel replace the handle by the request of the started operation (StandIns), which may belong to the
// device or to the host's MPI. A persistent operation is thus a non-blocking one whose arguments are kept.
//
// Threads: any; as in MPI, one thread at a time uses a request.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

namespace offpath::mpi {

// Starts the operation and returns its request; the result is that of MPI_Start. The function is destroyed
// when the user frees the persistent request, even if the operation is not done.
using StartOperation = std::function<int(MPI_Request* started)>;

// Makes the user's handle, inactive.
int make_persistent(StartOperation start, MPI_Request* request);

// Starts it. A request that is none of ours is started by the host's MPI.
int start_persistent(MPI_Request* request);
// The user frees it: true, and `started` is the operation that is still active, or null. False: it is none of
// ours.
bool end_persistent(MPI_Request request, MPI_Request* started);

inline std::atomic<std::uint32_t> persistent_requests{0};  // existing

// The user's requests, with active persistent ones replaced by their operations' requests. The destructor
// writes the call's results into the user's array. A persistent request whose operation is done is inactive
// from then on.
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

// The request that `request` stands for now: itself, or the operation of an active persistent request.
MPI_Request stand_in_of(MPI_Request request);

}  // namespace offpath::mpi
