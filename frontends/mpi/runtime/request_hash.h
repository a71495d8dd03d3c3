// A key for tables of requests by their handles.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstring>

namespace offpath::mpi {

// Differs for each handle. The upper bits are mixed, so a table of 2^n buckets takes the upper n bits.
inline std::uint64_t hash_of(MPI_Request request) {
    // MPI_Request is a pointer in some MPI libraries and an integer in others.
    static_assert(sizeof(MPI_Request) <= sizeof(std::uint64_t));  // NOLINT(bugprone-sizeof-expression)
    std::uint64_t bits = 0;
    std::memcpy(&bits, &request, sizeof(MPI_Request));  // NOLINT(bugprone-sizeof-expression)
    return bits * 0x9E3779B97F4A7C15U;
}

}  // namespace offpath::mpi
