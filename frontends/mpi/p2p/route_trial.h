// RouteTrial: whether the device or the host's MPI is faster for several large messages of one size that the
// program only waits for. The device is often faster for two directions at a time, the host's MPI for short
// messages on a fast network. Both are tried, and the slower one is tried again later. Pure.
//
// A trial costs what the slower engine costs. It therefore ends early if one engine is far behind. A trial
// that knows the result of a neighbouring size uses that result at first.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace offpath::mpi::p2p {

class RouteTrial {
  public:
    enum Engine : std::uint8_t { device, host };

    // The engine for the next exchange.
    Engine next() {
        is_asked_ = true;
        if (led_ > 0) {
            --led_;
            return host;
        }
        if (!is_decided()) return next_try();
        if (++since_trial_ < again_after_) return faster();
        since_trial_ = 0;
        again_after_ = std::min(2 * again_after_, longest_again);
        costs_[1 - faster()] = {};
        return next_try();
    }
    // The cost of an exchange, in a unit that is the same for both engines.
    void add(Engine engine, double cost) {
        Costs& costs = costs_[engine];
        costs.before = costs.count == 0 ? cost : costs.latest;
        costs.latest = cost;
        ++costs.count;
    }

    bool is_decided() const {
        const Costs &by_device = costs_[device], &by_host = costs_[host];
        if (by_device.count == 0 || by_host.count < 2) return false;
        const double least = std::min(by_device.lower(), by_host.lower());
        if (std::max(by_device.lower(), by_host.lower()) > clearly * least) return true;
        return by_device.count >= tries && by_host.count >= tries;
    }
    // Once the trial is decided: the host's MPI, unless the device is clearly faster.
    Engine faster() const {
        return costs_[device].lower() < most_of_host * costs_[host].lower() ? device : host;
    }
    // The device will be faster for longer messages, too.
    bool is_settled_on_device() const { return is_decided() && faster() == device; }

    // next() has not been called yet.
    bool is_new() const { return !is_asked_; }
    // The host's MPI is not tried until the device has become doubtful.
    void settle_on_device() {
        constexpr double hopeless = std::numeric_limits<double>::max();
        costs_[host] = {hopeless, hopeless, tries};
        led_ = 0;
    }
    // The device is not tried for a while.
    void follow_host() { led_ = exchanges_led; }

  private:
    // Without a clear gain the host's MPI is used, as without offpath: two samples are uncertain by as much.
    static constexpr double most_of_host = 0.9;
    static constexpr double clearly = 2.0;
    static constexpr std::uint64_t tries = 3;  // the first of which is not counted
    static constexpr std::uint32_t exchanges_led = 64;
    static constexpr std::uint32_t longest_again = 1U << 16;

    struct Costs {
        double latest = 0, before = 0;
        std::uint64_t count = 0;

        double lower() const { return std::min(latest, before); }
    };

    // The device first, because there usually is a sample of it from before there was a choice.
    Engine next_try() const {
        if (costs_[device].count == 0) return device;
        if (costs_[host].count < 2 || costs_[device].count >= tries) return host;
        return device;
    }

    std::array<Costs, 2> costs_{};
    std::uint32_t since_trial_ = 0, again_after_ = 64;
    bool is_asked_ = false;
    std::uint32_t led_ = 0;  // exchanges that are the host's MPI's before the first trial
};

}  // namespace offpath::mpi::p2p
