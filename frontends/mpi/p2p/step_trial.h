// StepTrial: whether the device or the host's MPI makes a program's step shorter that computes beside its
// large messages of one size. The step lasts from the post of the first message to the end of the wait for
// the last, so it has the computation in it, whatever part of it overlaps. Pure.
//
// One engine is the usual one, at first that of the constructor. Now and then the other is tried, and takes
// over if its steps are clearly shorter. A program must not become slower: where the host's MPI is usual, the
// first trial comes late enough to cost little of what the program has run by then, and it ends after two
// steps if they are long.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "route_trial.h"

namespace offpath::mpi::p2p {

class StepTrial {
  public:
    using Engine = RouteTrial::Engine;

    explicit StepTrial(Engine first = RouteTrial::host)
        : usual_(first), again_after_(first == RouteTrial::host ? late : soon) {}

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
        if (tried_.count == 2 && cost > hopeless * lately_.middle()) left_ = 0;
        if (tried_.count < tries) return;
        left_ = 0;
        const double mean = (tried_.latest[1] + tried_.latest[2]) / 2;
        const double longer = std::max(tried_.latest[1], tried_.latest[2]);
        if (mean >= clearly * lately_.middle() || longer >= lately_.middle()) return;
        usual_ = engine;
        lately_ = {};
        lately_.add(tried_.latest[1]);
        lately_.add(tried_.latest[2]);
    }

    Engine usual() const { return usual_; }

  private:
    static constexpr double clearly = 0.95;
    static constexpr double hopeless = 1.5;
    static constexpr std::size_t tries = 3;
    static constexpr std::uint32_t soon = 8, late = 48;
    static constexpr std::uint32_t asked_at_most = 8, least_again = 64, longest_again = 1U << 16;

    struct Costs {
        std::array<double, 4> latest{};
        std::size_t count = 0;

        void add(double cost) { latest[count++ % latest.size()] = cost; }
        // The mean without the longest and the shortest, if there are four: steps may differ in turns.
        double middle() const {
            const std::size_t known = std::min(count, latest.size());
            if (known == 0) return 0;
            std::array<double, 4> sorted = latest;
            std::sort(sorted.begin(), sorted.begin() + known);
            if (known == 4) return (sorted[1] + sorted[2]) / 2;
            return std::accumulate(sorted.begin(), sorted.begin() + known, 0.0) / static_cast<double>(known);
        }
    };

    Engine other() const { return usual_ == RouteTrial::device ? RouteTrial::host : RouteTrial::device; }

    Engine usual_;
    Costs lately_, tried_;  // of the usual engine, and of the other in the present trial
    std::uint32_t since_ = 0, again_after_;
    std::uint32_t left_ = 0;  // how many steps the present trial may still take; 0: there is none
};

}  // namespace offpath::mpi::p2p
