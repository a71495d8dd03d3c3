#include "time_in_mpi.h"

#include <algorithm>
#include <mutex>

#include "base/clock.h"

namespace offpath::mpi::presence {
namespace {

int windows = 0;
// When counting began, on both clocks.
std::uint64_t began_ns = 0;
std::uint64_t began = 0;
// The sum of earlier periods of counting.
Reading before;
Reading lately;
std::uint64_t told_inside_ns = 0;

// Counted since the first window, on both clocks.
struct Counted {
    std::uint64_t nanoseconds = 0, ticks = 0;
};
Counted counted() {
    return {now_ns() - began_ns, ticks_since(began)};
}

}  // namespace

Reading read() {
    if (outstanding.timed == 0) return before;
    const auto [counted_ns, counted_ticks] = counted();
    const std::uint64_t inside_ticks =
        outstanding.inside_ticks +
        (outstanding.calls_entered > 0 ? ticks_since(outstanding.entered_ticks) : 0);
    if (counted_ticks == 0) return before;
    const double share = static_cast<double>(inside_ticks) / static_cast<double>(counted_ticks);
    const auto inside_ns = static_cast<std::uint64_t>(share * static_cast<double>(counted_ns));
    // Never report less than before, whatever the rounding.
    told_inside_ns = std::max(told_inside_ns, before.inside_ns + inside_ns);
    return {before.counted_ns + counted_ns, told_inside_ns};
}

Reading seen_lately() {
    // Several threads may make windows at once.
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    const Reading now = read();
    const Reading since = {now.counted_ns - lately.counted_ns, now.inside_ns - lately.inside_ns};
    lately = now;
    return since;
}

void begin() {
    if (windows++ > 0) return;
    outstanding.inside_ticks = 0;
    began_ns = now_ns();
    began = ticks();
    outstanding.timed.raise();
}

void end() {
    if (--windows > 0) return;
    before = read();
    outstanding.timed.lower();
}

std::uint64_t ticks_of(std::uint64_t nanoseconds) {
    const auto [counted_ns, counted_ticks] = counted();
    const double rate =
        counted_ns == 0 ? 1 : static_cast<double>(counted_ticks) / static_cast<double>(counted_ns);
    return static_cast<std::uint64_t>(rate * static_cast<double>(nanoseconds));
}

}  // namespace offpath::mpi::presence
