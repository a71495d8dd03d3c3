// Reactions: what a program does at once when a test finds that an operation is complete, such as passing on
// what it has received. Otherwise it goes on computing.
//
// A profile has one course of events. If an operation is complete sooner in a replay, a program that reacts
// makes its next calls sooner, too. Whether it does is learnt for each place that posts operations, from the
// tests that were successful before all that the program would make.
//
// A value type that all ranks of a replay fill and then share. Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

namespace offpath::sim {

// A rank that computes for less between two calls makes the second one at once.
constexpr double at_once_s = 20e-6;

class Reactions {
  public:
    // An operation that `place` has posted was tested `tests` times in vain before it was waited for. Place 0
    // is an unknown one, and nothing is learnt about it.
    void waited(std::uint64_t place, std::uint64_t tests);
    // It was complete at a test, after `tests` others. `calls` more followed at once.
    void found(std::uint64_t place, std::uint64_t tests, std::size_t calls);
    // Whether the program computes on after tests in vain, until it waits.
    bool goes_on(std::uint64_t place) const;
    // How many calls follow at once, at least. 0: it does not react, or nobody knows.
    std::size_t calls_after(std::uint64_t place) const;

  private:
    struct Place {
        std::uint64_t most_tests = 0;
        bool goes_on = false;
        std::map<std::pair<std::uint64_t, std::size_t>, std::uint64_t>
            found;  // how often, by tests and calls
    };
    std::unordered_map<std::uint64_t, Place> places_;
};

}  // namespace offpath::sim
