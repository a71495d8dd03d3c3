// How much of a step's pairs a device takes, so that the host and it are done at the same time.
//
// A step lasts until both are done: the host with its part of the pairs and with all else that it does
// meanwhile, such as a rebuild or the pairs that need ghosts; the device with its part, the pairs that need
// ghosts if it takes them, and the transfers around them. Times are medians over the last steps, so that a
// step in which something else had a core changes nothing.
#pragma once

#include <array>
#include <cstddef>

namespace minimd {

// The median of the last values.
class Recent {
  public:
    void add(double value);
    // As if it were all that came before.
    void expect(double value) {
        count_ = 0;
        add(value);
    }
    double value() const { return median_; }  // 0: none yet

  private:
    static constexpr std::size_t most = 7;

    std::array<double, most> values_{};
    std::size_t count_ = 0;  // that have come
    double median_ = 0.0;
};

class Balance {
  public:
    // `fixed`: a share that is always used; negative: by measurement.
    explicit Balance(double fixed) : fixed_(fixed) {}

    // What the host does besides its part of the pairs takes about so long.
    void expect_host_busy(double seconds) { host_busy_.expect(seconds); }

    // The share in 0 ... 1 of `interior` blocks for a device that also computes `boundary` blocks.
    double share(std::size_t interior, std::size_t boundary) const;

    // `busy`: from the start of the device's share until the host has done its own, besides those `seconds`.
    void measured_host(std::size_t blocks, double seconds, double busy);
    // `busy`: from the host's start of the share until the device was done.
    void measured_device(std::size_t blocks, double seconds, double busy);

    double host_rate() const { return host_.value(); }  // seconds a block
    double host_busy() const { return host_busy_.value(); }
    double device_rate() const { return device_.value(); }
    double overhead() const { return overhead_.value(); }  // seconds of a share besides computing

  private:
    double fixed_;
    Recent host_, host_busy_, device_, overhead_;
};

}  // namespace minimd
