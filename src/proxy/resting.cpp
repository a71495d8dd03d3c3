#include "proxy/resting.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace offpath::proxy {

Resting::Next Resting::next(std::uint64_t now_ns) {
    if (idle_since_ns_ == 0) idle_since_ns_ = now_ns;
    const std::uint64_t idle_ns = now_ns - idle_since_ns_;
    if (yielded_ns_ == 0) {
        if (idle_ns < spin_ns_) return Next::spin;
        adapt(switches());
    }
    const bool alone = yielded_ns_ == 0 ? spin_ns_ == spin_limit_ns_ : now_ns - yielded_ns_ < brief_ns;
    if (alone && idle_ns < courteous_times * spin_limit_ns_) {
        yielded_ns_ = now_ns;
        return Next::yield;
    }
    if (alone) switches_ = switches();
    idle_since_ns_ = yielded_ns_ = 0;
    return Next::sleep;
}

void Resting::worked() {
    // The thread that had the core between two yields held it only briefly, so that switch does not count.
    if (yielded_ns_ != 0) switches_ = switches();
    idle_since_ns_ = yielded_ns_ = 0;
}

long Resting::switches() const {
    rusage usage{};
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : switches_;
}

void Resting::adapt(long seen) {
    if (spin_limit_ns_ == 0) return;
    if (std::exchange(switches_, seen) != seen) {
        spin_ns_ /= 2;
        if (spin_ns_ < 1000) spin_ns_ = 0;
    } else {
        spin_ns_ = std::min(spin_limit_ns_, spin_ns_ + std::max<std::uint64_t>(spin_limit_ns_ / 64, 1));
    }
}

}  // namespace offpath::proxy
