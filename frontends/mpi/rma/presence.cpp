#include "presence.h"

#include "base/clock.h"

namespace offpath::mpi::presence {
namespace {

constexpr std::uint64_t one_in = 16;
// Calls with this many elements copy enough for the clock to cost little.
constexpr int always_timed = 4096;

int windows = 0;
int depth = 0;  // of calls that can block
std::uint64_t entered_ns = 0;
std::uint64_t inside_ns = 0;
std::uint64_t began_ns = 0;  // the present time of counting
std::uint64_t counted_before_ns = 0;
std::uint64_t calls = 0;
Reading lately;

std::uint64_t now_ns() {
    return SteadyClock().now_ns();
}

}  // namespace

Reading read() {
    if (!counted) return {counted_before_ns, inside_ns};
    const std::uint64_t now = now_ns();
    return {counted_before_ns + (now - began_ns), inside_ns + (depth > 0 ? now - entered_ns : 0)};
}

Reading seen_lately() {
    const Reading now = read();
    const Reading since = {now.counted_ns - lately.counted_ns, now.inside_ns - lately.inside_ns};
    lately = now;
    return since;
}

void begin() {
    if (windows++ > 0) return;
    began_ns = now_ns();
    counted = true;
}

void end() {
    if (--windows > 0) return;
    const Reading now = read();
    counted_before_ns = now.counted_ns;
    inside_ns = now.inside_ns;
    counted = false;
}

void Inside::enter() {
    if (depth++ == 0) entered_ns = now_ns();
}

void Inside::leave() {
    if (--depth == 0 && counted) inside_ns += now_ns() - entered_ns;
}

void OneSided::begin_call(int elements) {
    if (depth > 0) return;
    const bool large = elements >= always_timed;
    if (!large && calls++ % one_in != 0) return;
    stands_for_ = large ? 1 : one_in;
    began_ns_ = now_ns();
}

void OneSided::end_call() const {
    inside_ns += stands_for_ * (now_ns() - began_ns_);
}

}  // namespace offpath::mpi::presence
