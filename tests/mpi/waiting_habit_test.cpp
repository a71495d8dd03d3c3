#include "p2p/waiting_habit.h"
#include "p2p/route_trial.h"
#include "p2p/step_trial.h"
#include "runtime/time_in_mpi.h"

#include <gtest/gtest.h>

namespace offpath::mpi::p2p {
namespace {

// Returns after how many messages that are only waited for the habit is settled.
int until_settled(WaitingHabit& habit) {
    int count = 0;
    for (; !habit.only_waits(); ++count)
        habit.add(true);
    return count;
}

TEST(WaitingHabit, TakesAFewInARow) {
    WaitingHabit habit;
    EXPECT_FALSE(habit.only_waits());
    habit.add(true);
    habit.add(false);
    EXPECT_EQ(until_settled(habit), 2);
}

TEST(WaitingHabit, IsBrokenByOneMessage) {
    WaitingHabit habit;
    until_settled(habit);
    for (int i = 0; i < 10'000; ++i)
        habit.add(true);
    habit.add(false);
    EXPECT_FALSE(habit.only_waits());
}

TEST(WaitingHabit, TakesTwiceAsManyEachTimeItIsBroken) {
    WaitingHabit habit;
    EXPECT_EQ(until_settled(habit), 2);
    for (const int expected : {4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024}) {
        habit.add(false);
        EXPECT_EQ(until_settled(habit), expected);
    }
}

// Runs exchanges of a trial in which each engine has the given cost. Returns how many were the host's.
template <typename Trial>
int exchanges_on_host(Trial& trial, int count, double device, double host) {
    int on_host = 0;
    for (int i = 0; i < count; ++i) {
        const RouteTrial::Engine engine = trial.next();
        on_host += engine == RouteTrial::host ? 1 : 0;
        trial.add(engine, engine == RouteTrial::host ? host : device);
    }
    return on_host;
}

TEST(RouteTrial, TriesBothAndStaysWithTheBetter) {
    RouteTrial slow_device, slow_host, equal;
    EXPECT_EQ(exchanges_on_host(slow_device, 60, 1.5, 1.0), 57);
    EXPECT_EQ(exchanges_on_host(slow_host, 60, 1.0, 1.5), 3);
    EXPECT_EQ(exchanges_on_host(equal, 60, 1.0, 1.0), 57);
    EXPECT_TRUE(slow_host.is_settled_on_device());
    EXPECT_FALSE(slow_device.is_settled_on_device());
    EXPECT_FALSE(equal.is_settled_on_device());
}

TEST(RouteTrial, EndsEarlyWhereOneIsFarBehind) {
    RouteTrial slow_device, slow_host;
    EXPECT_EQ(exchanges_on_host(slow_device, 60, 3.0, 1.0), 59);
    EXPECT_EQ(exchanges_on_host(slow_host, 60, 1.0, 3.0), 2);
    // The device is tried at first, and again after 64, 128, ... exchanges.
    EXPECT_EQ(exchanges_on_host(slow_device, 100'000, 3.0, 1.0), 100'000 - 10);
}

TEST(RouteTrial, OneSlowExchangeDecidesNothing) {
    RouteTrial trial;
    for (const double cost : {9.0, 1.0, 9.0})
        trial.add(RouteTrial::device, cost);
    EXPECT_EQ(exchanges_on_host(trial, 60, 1.0, 1.5), 3);
}

TEST(RouteTrial, TheFirstExchangeOfAWayIsNotCounted) {
    RouteTrial trial;
    for (const double cost : {1.0, 5.0, 5.0})
        trial.add(RouteTrial::device, cost);
    EXPECT_EQ(exchanges_on_host(trial, 60, 5.0, 2.0), 60);
}

TEST(RouteTrial, LooksAgainWhenTimesHaveChanged) {
    RouteTrial trial;
    exchanges_on_host(trial, 100, 1.0, 2.0);
    EXPECT_GT(exchanges_on_host(trial, 1000, 4.0, 2.0), 700);
    EXPECT_LT(exchanges_on_host(trial, 100'000, 1.0, 2.0), 2000);
}

TEST(RouteTrial, MayBeLeftOut) {
    RouteTrial trial;
    EXPECT_TRUE(trial.is_new());
    trial.settle_on_device();
    EXPECT_EQ(exchanges_on_host(trial, 60, 1.0, 0.5), 0);
    EXPECT_FALSE(trial.is_new());
    EXPECT_TRUE(trial.is_settled_on_device());
    EXPECT_GT(exchanges_on_host(trial, 200, 1.0, 0.5), 100);
}

TEST(RouteTrial, FollowsTheHostForAWhile) {
    RouteTrial slow_device, slow_host;
    for (RouteTrial* trial : {&slow_device, &slow_host})
        trial->follow_host();
    EXPECT_EQ(exchanges_on_host(slow_device, 120, 4.0, 1.0), 119);
    EXPECT_EQ(exchanges_on_host(slow_host, 120, 1.0, 4.0), 64);
}

TEST(StepTrial, BeginsWithTheHostAndCostsLittle) {
    StepTrial young, slow_device, equal, slow_host;
    EXPECT_EQ(exchanges_on_host(young, 48, 1.0, 9.0), 48);
    EXPECT_GE(exchanges_on_host(slow_device, 1000, 1.4, 1.0), 985);
    EXPECT_GE(exchanges_on_host(slow_device, 100'000, 5.0, 1.0), 99'970);
    EXPECT_GE(exchanges_on_host(equal, 1000, 1.0, 1.0), 985);
    EXPECT_LT(exchanges_on_host(slow_host, 1000, 0.9, 1.0), 70);
}

// The costs of a program's steps may differ in turns.
TEST(StepTrial, ComparesWholeTurns) {
    StepTrial trial;
    for (int step = 0; step < 200; ++step) {
        const double turn = step % 2 == 0 ? 1.0 : 1.2;
        const RouteTrial::Engine engine = trial.next();
        trial.add(engine, engine == RouteTrial::host ? turn : 0.8 * turn);
    }
    EXPECT_EQ(trial.usual(), RouteTrial::device);
}

TEST(StepTrial, StaysWithTheDeviceUnlessTheHostIsClearlyFaster) {
    StepTrial slow_device(RouteTrial::device), slow_host(RouteTrial::device), equal(RouteTrial::device),
        nearly(RouteTrial::device);
    EXPECT_EQ(exchanges_on_host(slow_device, 60, 1.2, 1.0), 52);
    EXPECT_EQ(exchanges_on_host(slow_host, 60, 1.0, 1.5), 3);
    EXPECT_EQ(exchanges_on_host(equal, 60, 1.0, 1.0), 3);
    EXPECT_EQ(exchanges_on_host(nearly, 60, 1.0, 0.96), 3);
}

TEST(StepTrial, EndsEarlyWhereTheHostIsFarBehind) {
    StepTrial trial(RouteTrial::device);
    EXPECT_EQ(exchanges_on_host(trial, 60, 1.0, 3.0), 2);
    EXPECT_LE(exchanges_on_host(trial, 100'000, 1.0, 3.0), 2 * 11);
}

TEST(StepTrial, OneSlowStepDecidesNothing) {
    StepTrial trial(RouteTrial::device);
    for (const double cost : {1.0, 9.0, 9.0, 1.0, 9.0})
        trial.add(RouteTrial::device, cost);
    EXPECT_EQ(exchanges_on_host(trial, 60, 1.0, 1.0), 3);
    // One short step of the host's says nothing either.
    StepTrial lucky(RouteTrial::device);
    exchanges_on_host(lucky, 8, 1.0, 1.0);
    for (const double cost : {1.0, 0.5, 1.0}) {
        EXPECT_EQ(lucky.next(), RouteTrial::host);
        lucky.add(RouteTrial::host, cost);
    }
    EXPECT_EQ(lucky.usual(), RouteTrial::device);
}

TEST(StepTrial, LooksAgainWhenTimesHaveChanged) {
    StepTrial trial(RouteTrial::device);
    exchanges_on_host(trial, 100, 2.0, 1.0);
    EXPECT_LT(exchanges_on_host(trial, 1000, 0.8, 1.0), 300);
    EXPECT_GT(exchanges_on_host(trial, 10'000, 2.0, 1.0), 5000);
}

TEST(StepTrial, StepsThatUseBothEnginesEndATrial) {
    StepTrial trial(RouteTrial::device);
    exchanges_on_host(trial, 8, 1.0, 1.0);
    int on_host = 0;
    for (int step = 0; step < 60; ++step)  // none has a result
        on_host += trial.next() == RouteTrial::host ? 1 : 0;
    EXPECT_LE(on_host, 8);
}

TEST(WaitingHabit, ComputingIsLongForTheMessageOrLongInItself) {
    EXPECT_FALSE(has_computed(0, 0));
    EXPECT_FALSE(has_computed(50'000, 1'000'000));
    EXPECT_TRUE(has_computed(200'000, 1'000'000));
    EXPECT_TRUE(has_computed(101'000, 100'000'000));
    EXPECT_TRUE(has_computed(6'000, 20'000));
    EXPECT_FALSE(has_computed(500, 1'000));
}

}  // namespace
}  // namespace offpath::mpi::p2p
