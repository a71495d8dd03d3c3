// From measured costs to a choice, in numbers that can be shown.
//
// An operation is posted, the program computes for a while (the gap), then waits. What the operation costs
// the program is the time that the gap does not hide. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "table.h"

namespace offpath::mpi {

// A choice has to pay by this much, as measurements differ by about as much from run to run.
inline constexpr double least_gain = 0.05;
// What a choice may cost a program that does not use it the way it was made for.
inline constexpr double most_loss = 0.02;

// Seconds of an operation that the program sees when it computes for `gap_s` between post and wait.
double exposed(const Cost& cost, double gap_s);

// Whether the device is the choice as long as nobody knows the program's gap: it pays by `least_gain` where
// the program computes as long as the host's operation takes, and loses at most `most_loss` where it waits at
// once.
bool device_pays(const Cost& host, const Cost& device);
// The same where the program waits at once, as in a blocking call.
bool device_pays_blocking(const Cost& host, const Cost& device);

// Where a table says that the device begins to pay: the fewest bytes from which on it does at all sizes
// measured. Never, where it does not at the largest; what is larger than that goes by it.
inline constexpr std::uint64_t never = UINT64_MAX;
std::uint64_t switch_over(const std::vector<TableRow>& rows, bool blocking);

// The costs at `bytes`, between the measured sizes on a straight line; nothing outside of them.
std::optional<TableRow> at_size(const std::vector<TableRow>& rows, std::uint64_t bytes);

}  // namespace offpath::mpi
