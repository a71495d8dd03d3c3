// How much of the interior pairs a device should take, by what host and device were measured to need.
//
// A step ends when both are done: the host with its share and, in a re-neighbouring step, with the rebuild;
// the device with its share, the pairs that need ghosts, and the transfers around them. Times are smoothed
// over some steps.
#pragma once

#include <cstddef>

namespace minimd {

class Balance {
  public:
    // `fixed`: a share that is always used; negative: by measurement.
    explicit Balance(double fixed) : fixed_(fixed) {}

    // The share in 0 ... 1 of `interior` blocks for a device that also computes `boundary` blocks, while the
    // host first does something else for `host_busy` seconds.
    double share(std::size_t interior, std::size_t boundary, double host_busy) const;

    void measured_host(std::size_t blocks, double seconds);
    // `busy`: from the host's start of the share until the device was done.
    void measured_device(std::size_t blocks, double seconds, double busy);

    double host_rate() const { return host_; }  // seconds a block
    double device_rate() const { return device_; }
    double overhead() const { return overhead_; }  // seconds of a share besides computing

  private:
    static void smooth(double& value, double now) { value = value == 0.0 ? now : 0.7 * value + 0.3 * now; }

    double fixed_;
    double host_ = 0.0, device_ = 0.0, overhead_ = 0.0;
};

}  // namespace minimd
