#include "proxy/resting.h"

#include <sys/resource.h>

#include <algorithm>

namespace offpath::proxy {

void Resting::adapt() {
    if (spin_limit_ns_ == 0) return;
    rusage usage{};
    if (getrusage(RUSAGE_THREAD, &usage) != 0) return;
    const bool pushed_out = usage.ru_nivcsw != switches_;
    switches_ = usage.ru_nivcsw;
    if (pushed_out) {
        spin_ns_ /= 2;
        if (spin_ns_ < 1000) spin_ns_ = 0;
    } else {
        spin_ns_ = std::min(spin_limit_ns_, spin_ns_ + std::max<std::uint64_t>(spin_limit_ns_ / 64, 1));
    }
}

}  // namespace offpath::proxy
