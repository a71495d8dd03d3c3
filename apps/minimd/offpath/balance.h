// How much of a step's pairs a device computes, so that host and device finish at the same time.
//
// A step lasts until both have finished. The host computes its part of the pairs and does everything else,
// such as a rebuild or the pairs that need ghosts. The device computes its part, perhaps also the pairs that
// need ghosts, and has transfers before and after. Times are medians over the last steps, so a single step
// that another process disturbed changes nothing.
#pragma once

#include <array>
#include <cstddef>

namespace minimd {

// The median of the last values.
class Recent {
  public:
    void add(double value);
    // Forgets all earlier values and begins with this one.
    void expect(double value) {
        count_ = 0;
        add(value);
    }
    double value() const { return median_; }  // 0: none yet

  private:
    static constexpr std::size_t most = 7;

    std::array<double, most> values_{};
    std::size_t count_ = 0;  // number of values added
    double median_ = 0.0;
};

class Balance {
  public:
    // `fixed` is a share that is always used. If it is negative, the share follows from measurements.
    explicit Balance(double fixed) : fixed_(fixed) {}

    // Sets an estimate of the time that the host needs besides its part of the pairs.
    void expect_host_busy(double seconds) { host_busy_.expect(seconds); }

    // Returns the device's share of `interior` blocks, from 0 to 1. The device also computes `boundary`
    // blocks.
    double share(std::size_t interior, std::size_t boundary) const;

    // Records that the host computed `blocks` blocks in `seconds`. `busy` is the rest of the time from the
    // start of the device's share until the host finished its own part.
    void measured_host(std::size_t blocks, double seconds, double busy);
    // Records that the device computed `blocks` blocks in `seconds`. `busy` is the time from the host's start
    // of the share until the device finished.
    void measured_device(std::size_t blocks, double seconds, double busy);

    double host_rate() const { return host_.value(); }  // seconds per block
    double host_busy() const { return host_busy_.value(); }
    double device_rate() const { return device_.value(); }
    double overhead() const { return overhead_.value(); }  // seconds of a share besides computing

  private:
    double fixed_;
    Recent host_, host_busy_, device_, overhead_;
};

}  // namespace minimd
