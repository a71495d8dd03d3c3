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
std::uint64_t calls = 0;
bool seen_any = false;  // windows with two ways
Reading lately;

std::uint64_t now_ns() {
    return SteadyClock().now_ns();
}

}  // namespace

Reading read() {
    const std::uint64_t now = now_ns();
    return {now, inside_ns + (depth > 0 ? now - entered_ns : 0)};
}

Reading seen_lately() {
    if (!seen_any) return {};
    const Reading now = read();
    const Reading since = {now.now_ns - lately.now_ns, now.inside_ns - lately.inside_ns};
    lately = now;
    return since;
}

void begin() {
    if (!seen_any) lately = read();
    seen_any = true;
    ++windows;
    counted = true;
}

void end() {
    counted = --windows > 0;
}

void Inside::enter() {
    if (depth++ == 0) entered_ns = now_ns();
}

void Inside::leave() {
    if (--depth == 0) inside_ns += now_ns() - entered_ns;
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
