// The comparison of the two ways for puts and gets of one size (ways/epoch_trial.h).
#include "ways/epoch_trial.h"

#include <gtest/gtest.h>

namespace {

using offpath::ways::EpochTrial;
using offpath::ways::Way;

// Runs epochs with these costs. Returns how many went by the device.
int run(EpochTrial& trial, int epochs, std::uint64_t host_ns, std::uint64_t device_ns,
        std::uint32_t operations = 1) {
    int by_device = 0;
    for (int i = 0; i < epochs; ++i) {
        const Way way = trial.next();
        by_device += way == Way::device ? 1 : 0;
        trial.ended(way, operations, way == Way::host ? host_ns : device_ns, EpochTrial::stall_ns);
    }
    return by_device;
}

TEST(EpochTrial, BeginsWithTheHost) {
    EXPECT_EQ(EpochTrial().next(), Way::host);
}

TEST(EpochTrial, TriesBothAndKeepsTheFaster) {
    EpochTrial host, device;
    EXPECT_EQ(run(host, 100, 20'000, 30'000), 3);
    EXPECT_EQ(host.next(), Way::host);
    EXPECT_EQ(run(device, 100, 30'000, 20'000), 97);
    EXPECT_EQ(device.next(), Way::device);
}

TEST(EpochTrial, OneTryIsEnoughWhereTheDifferenceIsClear) {
    EpochTrial trial;
    EXPECT_EQ(run(trial, 100, 20'000, 90'000), 1);
}

TEST(EpochTrial, ASmallDifferenceIsTheHosts) {
    EpochTrial trial;
    run(trial, 100, 20'000, 19'800);
    EXPECT_EQ(trial.next(), Way::host);
}

TEST(EpochTrial, TheSlowerOneIsTriedSeldom) {
    EpochTrial trial;
    run(trial, 100, 20'000, 30'000);
    EXPECT_EQ(run(trial, 20490, 20'000, 30'000), 10);
}

TEST(EpochTrial, WhatHasBecomeFasterIsFound) {
    EpochTrial trial;
    run(trial, 100, 20'000, 30'000);
    run(trial, 16000, 20'000, 5'000);
    EXPECT_EQ(trial.next(), Way::device);
}

TEST(EpochTrial, ANeighboursFindingHoldsForAWhile) {
    EpochTrial neighbour, trial;
    run(neighbour, 100, 20'000, 30'000);
    trial.follow(neighbour);
    EXPECT_FALSE(trial.is_fresh());
    EXPECT_EQ(run(trial, 128, 20'000, 5'000), 0);
    // After that the finding is tested, and proves wrong.
    EXPECT_GT(run(trial, 100, 20'000, 5'000), 95);
}

TEST(EpochTrial, EpochsOfAnotherLengthAreComparedAnew) {
    EpochTrial trial;
    run(trial, 100, 20'000, 30'000);
    EXPECT_FALSE(run(trial, 100, 700'000, 100'000, 64) == 0);
    EXPECT_EQ(trial.next(), Way::device);
}

TEST(EpochTrial, ATargetThatLeavesMpiIsNotWaitedForAgain) {
    EpochTrial trial;
    run(trial, 100, 20'000, 30'000);
    trial.ended(Way::host, 1, 200'000'000, EpochTrial::stall_ns);
    EXPECT_EQ(run(trial, 64, 200'000'000, 3'000'000), 64);
    // After that it is tried once more.
    EXPECT_EQ(trial.next(), Way::host);
}

TEST(EpochTrial, ABusyTargetCostsOneWaitAtFirst) {
    EpochTrial trial;
    EXPECT_EQ(run(trial, 20, 200'000'000, 3'000'000), 19);
}

}  // namespace
