#include "minimd/offpath/balance.h"

#include <algorithm>

namespace minimd {

void Recent::add(double value) {
    values_[count_++ % most] = value;
    const std::size_t filled = std::min(count_, most);
    std::array<double, most> sorted = values_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(filled / 2);
    std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(filled));
    median_ = *middle;
}

double Balance::share(std::size_t interior, std::size_t boundary) const {
    if (fixed_ >= 0.0) return fixed_;
    if (interior == 0) return 0.0;
    const double host = host_rate(), device = device_rate();
    if (host == 0.0 || device == 0.0) return 0.3;  // nothing is known yet
    const auto i = static_cast<double>(interior), b = static_cast<double>(boundary);
    return std::clamp((host * i + host_busy() - device * b - overhead()) / ((host + device) * i), 0.0, 1.0);
}

void Balance::measured_host(std::size_t blocks, double seconds, double busy) {
    if (blocks > 0) host_.add(seconds / static_cast<double>(blocks));
    host_busy_.add(busy);
}

void Balance::measured_device(std::size_t blocks, double seconds, double busy) {
    if (blocks > 0) device_.add(seconds / static_cast<double>(blocks));
    overhead_.add(std::max(0.0, busy - seconds));
}

}  // namespace minimd
