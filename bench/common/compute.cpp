#include "common/compute.h"

#include <array>

namespace bench {

namespace {

constexpr int kLanes = 256;
constexpr int kSweepsPerUnit = 4;

alignas(64) std::array<double, kLanes> lanes{};

}  // namespace

// All callers share one copy of this loop, at one alignment. Two inlined copies were seen to differ by a
// factor of two; then the time of the work alone would not predict the time of the same work after a post.
[[gnu::noinline, gnu::aligned(64)]] void compute(std::uint64_t units) {
    for (std::uint64_t sweep = 0; sweep < units * kSweepsPerUnit; ++sweep) {
        for (double& lane : lanes)
            // Tends to 1, so it neither overflows nor becomes denormal.
            lane = lane * 0.999 + 0.001;
        asm volatile("" : : "g"(lanes.data()) : "memory");  // forces every sweep to be executed
    }
}

}  // namespace bench
