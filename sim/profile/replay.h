// Replays a profile: each simulated rank computes as long, and calls what, the profiled rank did.
//
// Messages of up to `library_eager_bytes` leave their sender at once, as in the MPI libraries that programs
// rely on. Where there are devices, Routes says what goes to them; the ranks' libraries execute the rest.
// Calls that the simulator does not know take the time that they took, and are counted by name.
#pragma once

#include "sim/machine/cluster.h"
#include "sim/profile/profile.h"

#include <map>

namespace offpath::sim {

struct Unsupported {
    std::uint64_t count = 0;
    double inside_s = 0;
};

struct ReplayedCall {
    std::uint64_t count = 0;
    double inside_s = 0;  // of the simulated rank
};

struct Replayed {
    double time_s = 0;                             // until the last rank ends
    std::vector<std::vector<ReplayedCall>> calls;  // of each rank, by the numbers of its file
    std::map<std::string, Unsupported> unsupported;
};

// The cluster has as many ranks as the profile, and libraries (ClusterShape::has_libraries()). Throws
// Deadlock, or std::runtime_error.
Replayed replay(Cluster& cluster, const std::vector<RankProfile>& profiles);

}  // namespace offpath::sim
