// Code that the tests of the MPI front end share: a counter of failures, on which all ranks agree at the end,
// test patterns, and a duplicated communicator for reference results by PMPI. Tests use MPI_* for the calls
// under test and PMPI_* for all others.
#pragma once

#include <fmt/format.h>
#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace check {

inline std::atomic<int> failures{0};

inline int rank_of(MPI_Comm comm) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}
inline int size_of(MPI_Comm comm) {
    int size = 0;
    PMPI_Comm_size(comm, &size);
    return size;
}

inline void fail(const std::string& what) {
    if (failures.fetch_add(1) < 10) {
        const std::string line = fmt::format("rank {}: FAILED {}\n", rank_of(MPI_COMM_WORLD), what);
        std::fwrite(line.data(), 1, line.size(), stderr);
    }
}

template <typename... Args>
void that(bool good, fmt::format_string<Args...> what, Args&&... args) {
    if (!good) fail(fmt::format(what, std::forward<Args>(args)...));
}

// Returns the number of failures of the whole job. Call it before MPI_Finalize.
inline int total_failures() {
    int mine = failures.load();
    int all = 0;
    PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

// Finalises MPI and returns the result of main.
inline int finish() {
    const int all = total_failures();
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}

// Numbers that differ by rank, call and position.
inline std::vector<int> pattern(std::size_t ints, int seed) {
    std::vector<int> data(ints);
    const int rank = rank_of(MPI_COMM_WORLD);
    for (std::size_t i = 0; i < ints; ++i)
        data[i] = static_cast<int>((i * 2654435761U) ^ static_cast<unsigned>(rank * 7919 + seed * 104729));
    return data;
}

inline const std::vector<int>& untouched(std::size_t ints) {
    static std::vector<int> data;
    data.assign(ints, 0x5A5A5A5A);
    return data;
}

}  // namespace check
