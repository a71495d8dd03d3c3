// The cost of calls as this rank sees it: the time inside the MPI calls that post an operation, test it and
// wait for it, whichever engine runs it.
//
// A call that is to be measured is begun before it is posted, gets its request when it is posted, and is
// followed until the request is done. Only a few calls are followed at a time. If a request ends unobserved
// (freed, or in MPI_Finalize), it is forgotten when its place is needed. While nothing is followed, the calls
// that wait and test pay one load. Thread-safe.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>

#include "refinement.h"
#include "runtime/outstanding_counts.h"

namespace offpath::mpi {

struct Team;

// This thread's next posted() names the request of `call`; time counts from now.
void begin_sample(Team& team, Slot& slot, const Slot::Call& call);
// Call it after posting; it returns `result`.
int posted(int result, const MPI_Request* request);

// For the time of a call that waits for or tests `requests`; examines the array before and after the call.
class FollowedWait {
  public:
    FollowedWait(int count, const MPI_Request* requests) {
        if (outstanding.followed != 0) begin(count, requests);
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
    std::array<Found, 4> requests_;  // if a call has more, the others are not followed
};

// In MPI_Finalize.
void forget_samples();

}  // namespace offpath::mpi
