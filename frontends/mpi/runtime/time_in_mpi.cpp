#include "time_in_mpi.h"

#include <algorithm>

#include "base/clock.h"
#include "base/ticks.h"

namespace offpath::mpi::presence {
namespace {

int windows = 0;
int depth = 0;
std::uint64_t entered = 0;  // in ticks, like the time inside
std::uint64_t inside = 0;
// When counting began, on both clocks.
std::uint64_t began_ns = 0;
std::uint64_t began = 0;
// The sum of earlier periods of counting.
Reading before;
Reading lately;
std::uint64_t told_inside_ns = 0;

// The counters of two cores may differ by a few ticks.
std::uint64_t since(std::uint64_t first) {
    const std::uint64_t now = ticks();
    return now > first ? now - first : 0;
}

}  // namespace

Reading read() {
    if (outstanding.timed == 0) return before;
    const std::uint64_t counted_ns = now_ns() - began_ns;
    const std::uint64_t counted_ticks = since(began);
    const std::uint64_t inside_ticks = inside + (depth > 0 ? since(entered) : 0);
    if (counted_ticks == 0) return before;
    const double share = static_cast<double>(inside_ticks) / static_cast<double>(counted_ticks);
    const auto inside_ns = static_cast<std::uint64_t>(share * static_cast<double>(counted_ns));
    // Never report less than before, whatever the rounding.
    told_inside_ns = std::max(told_inside_ns, before.inside_ns + inside_ns);
    return {before.counted_ns + counted_ns, told_inside_ns};
}

Reading seen_lately() {
    const Reading now = read();
    const Reading since = {now.counted_ns - lately.counted_ns, now.inside_ns - lately.inside_ns};
    lately = now;
    return since;
}

void begin() {
    if (windows++ > 0) return;
    inside = 0;
    began_ns = now_ns();
    began = ticks();
    outstanding.timed.raise();
}

void end() {
    if (--windows > 0) return;
    before = read();
    outstanding.timed.lower();
}

void Inside::enter() {
    if (depth++ == 0) entered = ticks();
}

void Inside::leave() {
    if (--depth == 0) inside += since(entered);
}

}  // namespace offpath::mpi::presence
