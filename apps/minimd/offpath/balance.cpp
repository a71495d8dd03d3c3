#include "minimd/offpath/balance.h"

#include <algorithm>

namespace minimd {

double Balance::share(std::size_t interior, std::size_t boundary, double host_busy) const {
    if (fixed_ >= 0.0) return fixed_;
    if (interior == 0) return 0.0;
    if (host_ == 0.0 || device_ == 0.0) return 0.3;  // nothing is known yet
    const auto i = static_cast<double>(interior), b = static_cast<double>(boundary);
    return std::clamp((host_ * i + host_busy - device_ * b - overhead_) / ((host_ + device_) * i), 0.0, 1.0);
}

void Balance::measured_host(std::size_t blocks, double seconds) {
    if (blocks > 0) smooth(host_, seconds / static_cast<double>(blocks));
}

void Balance::measured_device(std::size_t blocks, double seconds, double busy) {
    if (blocks > 0) smooth(device_, seconds / static_cast<double>(blocks));
    smooth(overhead_, std::max(0.0, busy - seconds));
}

}  // namespace minimd
