#include "common/compute.h"

#include <array>

namespace bench {

namespace {

constexpr int kLanes = 256;
constexpr int kSweepsPerUnit = 4;

alignas(64) std::array<double, kLanes> lanes{};

}  // namespace

// One copy for all callers, at one alignment: two inlined copies of this loop were seen to differ by a factor
// of two, and the time of the work alone would say nothing about that of the same work after a post.
[[gnu::noinline, gnu::aligned(64)]] void compute(std::uint64_t units) {
    for (std::uint64_t sweep = 0; sweep < units * kSweepsPerUnit; ++sweep) {
        for (double& lane : lanes)
            lane = lane * 0.999 + 0.001;                    // tends to 1: neither overflow nor denormals
        asm volatile("" : : "g"(lanes.data()) : "memory");  // every sweep is carried out
    }
}

}  // namespace bench
