// The hash that makes the data of the operations: of streams (layouts.h) and of their words (operations.h).
#pragma once

#include <cstdint>

namespace mpi_bench {

inline std::uint64_t mix(std::uint64_t key) {
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9ULL;
    key = (key ^ (key >> 27)) * 0x94d049bb133111ebULL;
    return key ^ (key >> 31);
}

}  // namespace mpi_bench
