// StepTrial: whether the device or the host's MPI makes a program's step shorter that computes beside its
// large messages of one size. The step lasts from the post of the first message to the end of the wait for
// the last, so it has the computation in it, whatever part of it overlaps. Pure.
//
// The device is used unless the host's steps are clearly shorter: even the slower of two by more than
// `clearly` than the shortest of the device's. Equal steps therefore stay with the device, which hides more
// if the program computes for longer one day.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "route_trial.h"

namespace offpath::mpi::p2p {

class StepTrial {
  public:
    using Engine = RouteTrial::Engine;

    // The engine for the next step.
    Engine next() {
        if (left_ == 0 && ++since_ > again_after_) {
            since_ = 0;
            again_after_ = std::clamp(2 * again_after_, least_again, longest_again);
            left_ = asked_at_most;
            tried_ = {};
        }
        if (left_ == 0) return usual_;
        if (--left_ == 0) return usual_;  // too many steps used both engines, so there is no result
        return other();
    }
    // The cost of a step, in a unit that is the same for both engines.
    void add(Engine engine, double cost) {
        if (engine == usual_) return lately_.add(cost);
        if (left_ == 0) return;
        tried_.add(cost);
        // The first step is not counted: it may prepare connections.
        if (tried_.count == 2 && cost > hopeless * lately_.shortest()) left_ = 0;
        if (tried_.count < tries) return;
        left_ = 0;
        if (!is_other_better()) return;
        usual_ = engine;
        lately_ = {};
        lately_.add(tried_.latest[1]);
        lately_.add(tried_.latest[2]);
    }

    Engine usual() const { return usual_; }

  private:
    static constexpr double clearly = 0.95;
    static constexpr double hopeless = 2.0;
    static constexpr std::size_t tries = 3;
    static constexpr std::uint32_t asked_at_most = 8, first_after = 8, least_again = 64;
    static constexpr std::uint32_t longest_again = 1U << 16;

    struct Costs {
        std::array<double, 4> latest{};
        std::size_t count = 0;

        void add(double cost) { latest[count++ % latest.size()] = cost; }
        double shortest() const {
            const std::size_t known = std::min(count, latest.size());
            return known == 0 ? 0 : *std::min_element(latest.begin(), latest.begin() + known);
        }
    };

    Engine other() const { return usual_ == RouteTrial::device ? RouteTrial::host : RouteTrial::device; }
    bool is_other_better() const {
        const double low = std::min(tried_.latest[1], tried_.latest[2]);
        const double high = std::max(tried_.latest[1], tried_.latest[2]);
        return usual_ == RouteTrial::device ? high < clearly * lately_.shortest()
                                            : clearly * low <= lately_.shortest();
    }

    Engine usual_ = RouteTrial::device;
    Costs lately_, tried_;  // of the usual engine, and of the other in the present trial
    std::uint32_t since_ = 0, again_after_ = first_after;
    std::uint32_t left_ = 0;  // how many steps the present trial may still take; 0: there is none
};

}  // namespace offpath::mpi::p2p
