// Trial: whether the device or the host's MPI moves several large messages of one size sooner where the
// program only waits for them. Two directions at a time often go sooner by the device, short ones on a fast
// wire by the host's MPI. Both are tried, and the loser again later. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace offpath::mpi::p2p {

class Trial {
  public:
    enum Engine : std::uint8_t { device, host };

    // The next exchange's.
    Engine next() {
        for (const Engine engine : {device, host}) {
            if (!costs_[engine].are_enough()) return engine;
        }
        const Engine winner = costs_[device].lower() < most_of_host * costs_[host].lower() ? device : host;
        if (++since_trial_ < again_after_) return winner;
        since_trial_ = 0;
        again_after_ = std::min(2 * again_after_, longest_again);
        costs_[1 - winner] = {};
        return winner == host ? device : host;
    }
    // What one cost, in a unit that is the same for both.
    void add(Engine engine, double cost) {
        Costs& costs = costs_[engine];
        costs.before = costs.latest;
        costs.latest = cost;
        ++costs.count;
    }
    bool is_tried_on_host() const { return costs_[host].count > 0; }
    // The device is well ahead: with longer messages it will be too.
    bool is_settled_on_device() const {
        return costs_[device].are_enough() && costs_[host].are_enough() &&
               costs_[device].lower() < most_of_host * costs_[host].lower();
    }
    // The host's MPI is not tried before the device is doubted.
    void settle_on_device() {
        constexpr double hopeless = std::numeric_limits<double>::max();
        costs_[host] = {hopeless, hopeless, tries};
    }

  private:
    // What is no clear gain is left to the host's MPI, as without us: two samples are uncertain by as much.
    static constexpr double most_of_host = 0.9;
    static constexpr std::uint64_t tries = 3;  // the first of which is not counted
    static constexpr std::uint32_t longest_again = 1U << 16;

    struct Costs {
        double latest = 0, before = 0;
        std::uint64_t count = 0;

        bool are_enough() const { return count >= tries; }
        double lower() const { return std::min(latest, before); }
    };

    std::array<Costs, 2> costs_{};
    std::uint32_t since_trial_ = 0, again_after_ = 64;
};

}  // namespace offpath::mpi::p2p
