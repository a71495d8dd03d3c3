// Counts of messages between hosts and devices, for the summary. Threads: any.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/counter.h"

namespace offpath::mpi::devices {

void count_sent(std::size_t bytes);
void count_received(std::size_t bytes);

// Prints the summary's line on rank 0 if there were any; then true. Collective over the world.
bool print_summary();
std::span<const Counter> counters();

}  // namespace offpath::mpi::devices
