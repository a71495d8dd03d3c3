// How far the monotonic clocks of two ranks differ, by messages between them. For libraries that are loaded
// before an MPI program. Threads: one at a time for each communicator.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <ctime>

namespace offpath::clocks {

inline constexpr int tag = 7;
inline constexpr int exchanges = 8;

struct Offset {
    std::int64_t ns = 0;        // to add to this rank's clock to get the other one's
    std::int64_t error_ns = 0;  // by which `ns` may be wrong, either way
    std::uint64_t at_ns = 0;    // when that was so, on this rank's clock
};

inline std::uint64_t monotonic_ns() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

// Measures the offset to the clock of rank `other`, which calls answer(). The other clock was read between
// sending and receiving, so the shortest of the exchanges has the smallest error: half of its time.
inline Offset ask(MPI_Comm comm, int other) {
    Offset best;
    std::uint64_t shortest = UINT64_MAX;
    for (int i = 0; i < exchanges; ++i) {
        std::uint64_t theirs = 0;
        const std::uint64_t sent = monotonic_ns();
        PMPI_Send(&theirs, 1, MPI_UINT64_T, other, tag, comm);
        PMPI_Recv(&theirs, 1, MPI_UINT64_T, other, tag, comm, MPI_STATUS_IGNORE);
        const std::uint64_t took = monotonic_ns() - sent;
        if (took >= shortest) continue;
        shortest = took;
        best.at_ns = sent + took / 2;
        best.ns = static_cast<std::int64_t>(theirs - best.at_ns);
        best.error_ns = static_cast<std::int64_t>((took + 1) / 2);
    }
    return best;
}

inline void answer(MPI_Comm comm, int other) {
    for (int i = 0; i < exchanges; ++i) {
        std::uint64_t mine = 0;
        PMPI_Recv(&mine, 1, MPI_UINT64_T, other, tag, comm, MPI_STATUS_IGNORE);
        mine = monotonic_ns();
        PMPI_Send(&mine, 1, MPI_UINT64_T, other, tag, comm);
    }
}

}  // namespace offpath::clocks
