#include "p2p/habit.h"

#include <gtest/gtest.h>

namespace offpath::mpi::p2p {
namespace {

// How many messages that are only waited for it takes.
int until_settled(Habit& habit) {
    int count = 0;
    for (; !habit.only_waits(); ++count)
        habit.add(true);
    return count;
}

TEST(Habit, TakesAFewInARow) {
    Habit habit;
    EXPECT_FALSE(habit.only_waits());
    habit.add(true);
    habit.add(true);
    habit.add(false);
    EXPECT_EQ(until_settled(habit), 4);
}

TEST(Habit, IsBrokenByOneMessage) {
    Habit habit;
    until_settled(habit);
    for (int i = 0; i < 10'000; ++i)
        habit.add(true);
    habit.add(false);
    EXPECT_FALSE(habit.only_waits());
}

TEST(Habit, TakesTwiceAsManyEachTimeItIsBroken) {
    Habit habit;
    EXPECT_EQ(until_settled(habit), 4);
    for (const int expected : {8, 16, 32, 64, 128, 256, 512, 1024, 1024}) {
        habit.add(false);
        EXPECT_EQ(until_settled(habit), expected);
    }
}

TEST(Habit, ComputingIsLongForTheMessageOrLongInItself) {
    EXPECT_FALSE(has_computed(0, 0));
    EXPECT_FALSE(has_computed(50'000, 1'000'000));
    EXPECT_TRUE(has_computed(200'000, 1'000'000));
    EXPECT_TRUE(has_computed(101'000, 100'000'000));
    EXPECT_TRUE(has_computed(6'000, 20'000));
    EXPECT_FALSE(has_computed(500, 1'000));
}

}  // namespace
}  // namespace offpath::mpi::p2p
