// Which rounds devices take part in, for made-up times.
#include "minimd/offpath/trial.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace minimd {
namespace {

// Returns 'd' for each round with the device and 'h' for each round of hosts alone. The time of a round may
// depend on its number.
std::string played(Trial& trial, int rounds, const std::function<double(int, bool)>& seconds) {
    std::string played;
    double now = 3.0;
    for (int round = 0; round < rounds; ++round) {
        played += trial.now() ? 'd' : 'h';
        const bool next = trial.next();
        now += seconds(round, trial.now());
        if (trial.settles()) MPI_Barrier(MPI_COMM_WORLD);
        trial.ended(now, MPI_COMM_WORLD);
        EXPECT_EQ(trial.now(), next) << "what a round's lists were brought for";
    }
    return played;
}

double device_gains(int, bool device) {
    return device ? 0.8 : 1.0;
}
double device_costs(int, bool device) {
    return device ? 1.2 : 1.0;
}

std::string times(const char* each, int count) {
    std::string all;
    for (int i = 0; i < count; ++i)
        all += each;
    return all;
}

// Six rounds, then three of the other kind, and three to compare with. The next trial follows after a hundred
// rounds, and later ones after twice as many.
TEST(Trial, GoesBackToDevicesThatGain) {
    Trial trial(true);
    EXPECT_EQ(played(trial, 330, device_gains),
              times("d", 6) + "hhh" + times("d", 103) + "hhh" + times("d", 203) + "hhh" + times("d", 9));
}

TEST(Trial, LeavesDevicesThatCost) {
    Trial trial(true);
    // The round after a trial is decided before it ends.
    EXPECT_EQ(played(trial, 230, device_costs),
              times("d", 6) + "hhhdddd" + times("h", 99) + "ddd" + times("h", 103) + "ddd" + times("h", 9));
}

TEST(Trial, BeginsWithWhatWasWeighed) {
    Trial trial(true);
    trial.begin_with(false);
    EXPECT_EQ(played(trial, 30, device_gains), times("h", 6) + "dddhhhh" + times("d", 17));
}

TEST(Trial, IsNotMisledByOneRound) {
    // One round with the device, or one of the trial, is unusually long or short.
    for (const int odd : {3, 5, 7, 8, 10, 11}) {
        SCOPED_TRACE(odd);
        Trial trial(true);
        const auto seconds = [&](int round, bool device) {
            return round != odd ? device_gains(round, device) : device ? 5.0 : 0.1;
        };
        EXPECT_EQ(played(trial, 40, seconds), times("d", 6) + "hhh" + times("d", 31));
    }
}

TEST(Trial, IsNotMisledByAMachineThatGetsFaster) {
    for (const int faster : {4, 5, 6, 7, 8, 9, 10}) {
        SCOPED_TRACE(faster);
        Trial trial(true);
        const auto seconds = [&](int round, bool device) {
            return (round < faster ? 2.0 : 1.0) * device_gains(round, device);
        };
        EXPECT_EQ(played(trial, 40, seconds), times("d", 6) + "hhh" + times("d", 31));
    }
}

TEST(Trial, IsDecidedByAllRanksTogether) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    Trial trial(true);
    // The other ranks gain a little; the first rank loses more.
    const auto seconds = [&](int, bool device) { return !device ? 1.0 : rank == 0 ? 9.0 : 0.9; };
    EXPECT_EQ(played(trial, 20, seconds), times("d", 6) + "hhhdddd" + times("h", 7));
}

TEST(Trial, IsNoneWhereItIsSwitchedOff) {
    Trial trial(false);
    trial.begin_with(false);
    EXPECT_EQ(played(trial, 300, device_costs), times("d", 300));
}

}  // namespace
}  // namespace minimd
