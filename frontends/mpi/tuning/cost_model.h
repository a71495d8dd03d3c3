// From measured costs to a choice, in numbers that can be shown.
//
// An operation is posted, the program computes for a while (the gap), then waits. The cost of the operation
// for the program is the time that the gap does not hide. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "table.h"

namespace offpath::mpi {

// A choice must pay off by this much, because measurements vary by about as much from run to run.
inline constexpr double least_gain = 0.05;
// What a choice may cost a program that does not use it in the way for which it was made.
inline constexpr double most_loss = 0.02;

// The seconds of an operation that the program notices if it computes for `gap_s` between post and wait.
double exposed(const Cost& cost, double gap_s);

// Whether to choose the device while the program's gap is unknown: it pays off by `least_gain` if the program
// computes as long as the host's operation takes, and loses at most `most_loss` if the program waits at once.
bool device_pays(const Cost& host, const Cost& device);
// The same if the program waits at once, as in a blocking call.
bool device_pays_blocking(const Cost& host, const Cost& device);

// From which size on the device pays off, by a table: the smallest size from which on it does at all measured
// sizes. Never, if it does not at the largest one, which also stands for all larger sizes.
inline constexpr std::uint64_t never = UINT64_MAX;
std::uint64_t switch_over(const std::vector<TableRow>& rows, bool blocking);

// The costs at `bytes`, interpolated linearly between the measured sizes; nothing outside of them.
std::optional<TableRow> at_size(const std::vector<TableRow>& rows, std::uint64_t bytes);

}  // namespace offpath::mpi
