// What calls cost, as this rank sees it: the time spent inside the MPI calls that post an operation, test it
// and wait for it, wherever it runs.
//
// A call whose cost is wanted is begun before it is posted, gets its request when it is posted, and is
// followed until the request is done. A handful are followed at a time; a request that ends where nobody
// looks (freed, or in MPI_Finalize) is forgotten when its place is needed. While nothing is followed, the
// calls that wait and test pay one load. Thread-safe.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "refinement.h"

namespace offpath::mpi {

struct Team;

// This thread's next posted() gives the request of `call`, counted from now.
void begin_sample(Team& team, Slot& slot, const Slot::Call& call);
// After posting; passes `result` through.
int posted(int result, const MPI_Request* request);

inline std::atomic<std::uint32_t> requests_followed{0};

// Around a call that waits for or tests `requests`, before and after which the array is looked at.
class FollowedWait {
  public:
    FollowedWait(int count, const MPI_Request* requests) {
        if (requests_followed.load(std::memory_order_relaxed) != 0) begin(count, requests);
    }
    ~FollowedWait() {
        if (started_ns_ != 0) end();
    }
    FollowedWait(const FollowedWait&) = delete;
    FollowedWait& operator=(const FollowedWait&) = delete;

  private:
    struct Found {
        const MPI_Request* at;
        MPI_Request request;
    };
    void begin(int count, const MPI_Request* requests);
    void end();

    std::uint64_t started_ns_ = 0;
    std::size_t found_ = 0;
    std::array<Found, 4> requests_;  // more of one call are not followed
};

// In MPI_Finalize.
void forget_samples();

}  // namespace offpath::mpi
