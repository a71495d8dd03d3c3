// Counts what was offloaded and what was not, for the summary at MPI_Finalize. Rank 0 of a communicator
// counts each of its collectives once. Bytes are counted where they arrive. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/counter.h"
#include "runtime/selection.h"

namespace offpath::mpi {

struct Team;

void count_offloaded(const Team& team, Op op, std::uint64_t bytes_from_others, std::uint64_t size_decided_by,
                     Form form = Form::nonblocking);
void count_on_host(const Team& team, MPI_Comm comm, Op op, HostReason reason, std::uint64_t size_decided_by,
                   Form form = Form::nonblocking);

// A collective whose device was lost has run again on the host's MPI.
void count_second_run(const Team& team);

// Collectives that stayed on the host, by reason. Calls that cost only a few loads count themselves.
inline std::array<std::atomic<std::uint64_t>, host_reason_count> collectives_on_host{};
// The largest non-blocking ones that stayed because they are small, in the bytes that decide.
inline std::atomic<std::uint64_t> largest_small_collective{0};

inline void count_small(std::uint64_t size_decided_by) {
    collectives_on_host[static_cast<std::size_t>(HostReason::small)].fetch_add(1, std::memory_order_relaxed);
    if (size_decided_by > largest_small_collective.load(std::memory_order_relaxed))
        largest_small_collective.store(size_decided_by, std::memory_order_relaxed);
}

// Counts memory of offpath that MPI_Alloc_mem has returned; the summary names its back end.
void count_allocated(const void* address, std::size_t bytes);

// Sums over the job, and prints the line on rank 0 if there is something to report; then returns true.
// Collective over the world.
bool print_summary();
void add_collective_hints(std::vector<std::string>& hints);
std::span<const Counter> collective_counters();

// "1.2 GiB"
std::string human_bytes(std::uint64_t bytes);

}  // namespace offpath::mpi
