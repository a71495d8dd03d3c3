// Code that the tests of reductions share: operands of ranks, their sums, and the check of a team. Operands
// are 32-bit integers that wrap, so every order gives the same sum, and a lost or doubled operand shows.
#pragma once

#include "collectives/collectives.h"
#include "team_run.h"

#include <cstring>

namespace offpath::testing {

constexpr collectives::Reducing integer_sum{schedule::DataType::uint32, schedule::Reduction::sum};

inline std::uint32_t operand(std::uint32_t run, std::uint32_t rank, std::uint64_t element) {
    std::uint64_t x =
        (run + 1) * 0x9E3779B97F4A7C15ull + rank * 0xBF58476D1CE4E5B9ull + element * 0x94D049BB133111EBull;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9ull;
    return static_cast<std::uint32_t>(x >> 32);
}

// `count` operands of one rank, from `first` on.
inline Buffer operands(std::uint32_t run, std::uint32_t rank, std::uint64_t first, std::uint64_t count) {
    Buffer buffer(count * 4);
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint32_t value = operand(run, rank, first + i);
        std::memcpy(buffer.data() + 4 * i, &value, 4);
    }
    return buffer;
}

// Their sums over the ranks [0, ranks).
inline Buffer sums(std::uint32_t run, std::uint32_t ranks, std::uint64_t first, std::uint64_t count) {
    Buffer buffer(count * 4);
    for (std::uint64_t i = 0; i < count; ++i) {
        std::uint32_t value = 0;
        for (std::uint32_t rank = 0; rank < ranks; ++rank)
            value += operand(run, rank, first + i);
        std::memcpy(buffer.data() + 4 * i, &value, 4);
    }
    return buffer;
}

}  // namespace offpath::testing
