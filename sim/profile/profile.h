// A profile: what the ranks of an MPI program called, as the profiler has written it (docs/advise.md has the
// format). A value type. Reading throws ProfileError, which names the file, the field and the value.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace offpath::sim {

struct ProfileError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

constexpr std::int32_t any_peer = -1, null_peer = -2, no_peer = -3;

struct ProfiledCall {
    std::string name;
    std::int32_t comm = -1;  // index of RankProfile::communicators; -1: none
    std::int32_t peer = no_peer, tag = no_peer, from = no_peer, from_tag = no_peer;
    std::uint64_t bytes = 0, from_bytes = 0;
    std::int32_t window = -1;   // index of RankProfile::windows; -1: none
    std::uint64_t windows = 0;  // posts whose completion was seen, and the computation until then
    double window_compute_s = 0;
    std::vector<std::uint64_t> list;
};

// A call with the sums of its times, or a loop.
struct ProfiledNode {
    bool loop = false;
    std::uint32_t call = 0;
    std::uint64_t times = 1, count = 1, tests = 0;
    std::uint64_t bare = 0;  // of `count`: with hardly any computation
    double compute_s = 0, inside_s = 0;
    std::vector<ProfiledNode> body;
};

struct ProfiledCommunicator {
    std::uint32_t occurrence = 0, rank = 0;
    std::vector<std::uint32_t> members;
};

struct ProfiledWindow {
    std::int32_t comm = 0;
    std::uint64_t bytes = 0;
    bool allocated = false;  // by MPI, with the window
    bool busy = false;       // ranks have computed before it was made, so it begins on the device
};

struct RankProfile {
    double begin_s = 0, end_s = 0, compute_at_end_s = 0;
    double computed_s = 0;   // in all
    double preempted_s = 0;  // in which the rank would have computed and had no core
    double cpu_s = 0;        // that the rank's process had; 0: unknown
    std::uint64_t lost = 0;
    bool allocates = false;  // memory of MPI_Alloc_mem
    std::vector<ProfiledCommunicator> communicators;
    std::vector<ProfiledWindow> windows;
    std::vector<ProfiledCall> calls;
    std::vector<ProfiledNode> sequence;

    double measured_s() const { return end_s - begin_s; }
};

// The files rank-0.json to rank-N.json of a folder.
std::vector<RankProfile> read_profile(const std::string& folder);

}  // namespace offpath::sim
