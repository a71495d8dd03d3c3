#include "target/joint_copy.h"

#include <algorithm>

namespace offpath::target {
namespace {

constexpr std::uint64_t taken_mask = 0xffff'ffff;

}  // namespace

std::uint32_t JointCopy::begin() {
    const auto generation = static_cast<std::uint32_t>(state_.load(std::memory_order_relaxed) >> 32) + 1;
    copied_.store(0, std::memory_order_relaxed);
    failed_.store(0, std::memory_order_relaxed);
    state_.store(std::uint64_t{generation} << 32, std::memory_order_release);
    return generation;
}

bool JointCopy::take(std::uint32_t generation, std::uint64_t bytes, Piece& piece) {
    std::uint64_t state = state_.load(std::memory_order_acquire);
    do {
        piece.offset = (state & taken_mask) * piece_bytes;
        if (state >> 32 != generation || piece.offset >= bytes) return false;
    } while (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel,
                                           std::memory_order_acquire));
    piece.bytes = std::min(piece_bytes, bytes - piece.offset);
    return true;
}

}  // namespace offpath::target
