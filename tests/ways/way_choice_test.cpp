// The choice between the two ways of a window (ways/way_choice.h), and how often ranks compare.
#include "ways/way_choice.h"

#include <gtest/gtest.h>

namespace {

using offpath::ways::Evidence;
using offpath::ways::Way;
using offpath::ways::WayChoice;
using offpath::ways::WayPace;

constexpr std::uint64_t ms = 1'000'000;

TEST(WayChoice, BeginsWithTheHost) {
    WayChoice choice;
    EXPECT_EQ(choice.way(), Way::host);
}

TEST(WayChoice, LittleEvidenceChangesNothing) {
    WayChoice choice;
    // The rank fills its arrays before the first operation.
    EXPECT_EQ(choice.next({ms, ms}), Way::host);
    EXPECT_FALSE(WayChoice::is_enough({ms, ms}));
    WayChoice device(Way::device);
    for (int i = 0; i < 10; ++i)
        EXPECT_EQ(device.next({ms, 0}), Way::device);
}

TEST(WayChoice, ComputingRanksMoveItToTheDeviceAtOnce) {
    WayChoice choice;
    EXPECT_EQ(choice.next({10 * ms, 2 * ms}), Way::device);
    EXPECT_TRUE(WayChoice::is_enough({10 * ms, 2 * ms}));
}

TEST(WayChoice, WaitingRanksMoveItToTheHostAfterTwoLooks) {
    WayChoice choice(Way::device);
    EXPECT_EQ(choice.next({10 * ms, 0}), Way::device);
    EXPECT_EQ(choice.next({10 * ms, 0}), Way::host);
}

TEST(WayChoice, ALookAtComputationBetweenThemBeginsAnew) {
    WayChoice choice(Way::device);
    EXPECT_EQ(choice.next({10 * ms, 0}), Way::device);
    EXPECT_EQ(choice.next({10 * ms, 9 * ms}), Way::device);
    EXPECT_EQ(choice.next({10 * ms, 0}), Way::device);
    EXPECT_EQ(choice.next({10 * ms, 0}), Way::host);
}

TEST(WayChoice, BetweenTheSharesNothingChanges) {
    WayChoice host, device(Way::device);
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(host.next({100 * ms, 10 * ms}), Way::host);
        EXPECT_EQ(device.next({100 * ms, 10 * ms}), Way::device);
    }
}

TEST(WayPace, LooksLessAndLessOften) {
    WayPace pace;
    int looks = 0;
    for (int call = 0; call < 63; ++call)
        looks += pace.due() ? 1 : 0;
    EXPECT_EQ(looks, 6);  // after 1, 2, 4, 8, 16 and 32 calls
    for (int call = 0; call < 320; ++call)
        looks += pace.due() ? 1 : 0;
    EXPECT_EQ(looks, 16);
    pace.restart();
    EXPECT_TRUE(pace.due());
}

}  // namespace
