#include "minimd/offpath/kernel_latency.h"

#include <algorithm>

namespace minimd {

namespace {

double seconds_of(KernelLatency::Clock::time_point time) {
    return std::chrono::duration<double>(time.time_since_epoch()).count();
}

}  // namespace

void KernelLatency::asked(bool waits, Clock::time_point now) {
    asked_ = now;
    waits_ = waits;
}

void KernelLatency::done(double began, double ended, Clock::time_point at) {
    const double start = seconds_of(started_), now = seconds_of(at);
    if (began >= start && ended <= now) {
        // The device uses this host's clock. The way back can be measured only if the host asked before the
        // device was done.
        if (ended > seconds_of(asked_)) way_back_ = now - ended;
        latency_ = began - start + way_back_;
        return;
    }
    // With another clock, the latency is known only if the host waited. Otherwise the former value decays, so
    // that one long latency does not keep all later shares small.
    latency_ = waits_ ? std::max(0.0, now - start - (ended - began)) : 0.9 * latency_;
}

}  // namespace minimd
