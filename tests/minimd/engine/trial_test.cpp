// Which rounds devices take part in, by times that are made up.
#include "minimd/offpath/trial.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace minimd {
namespace {

// Of each round, 'd' with the device and 'h' by hosts alone; what a round takes may depend on its number.
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

TEST(Trial, GoesBackToDevicesThatGain) {
    Trial trial(true);
    EXPECT_EQ(played(trial, 222, device_gains),
              times("d", 7) + "hhh" + times("d", 100) + "hhh" + times("d", 100) + "hhh" + times("d", 6));
}

TEST(Trial, LeavesDevicesThatCost) {
    Trial trial(true);
    // The round after a trial is decided before it ends.
    EXPECT_EQ(played(trial, 222, device_costs),
              times("d", 7) + "hhhd" + times("h", 99) + "ddd" + times("h", 100) + "ddd" + times("h", 6));
}

TEST(Trial, BeginsWithWhatWasWeighed) {
    Trial trial(true);
    trial.begin_with(false);
    EXPECT_EQ(played(trial, 30, device_gains), times("h", 7) + "dddh" + times("d", 19));
}

TEST(Trial, IsNotMisledByOneRound) {
    // One of the trial's rounds, and then one of those with the device, is as short or as long as never
    // again.
    for (const int odd : {5, 8, 9}) {
        SCOPED_TRACE(odd);
        Trial trial(true);
        EXPECT_EQ(played(trial, 40,
                         [&](int round, bool device) {
                             if (round == odd) return device ? 5.0 : 0.1;
                             return device_gains(round, device);
                         }),
                  times("d", 7) + "hhh" + times("d", 30));
    }
}

TEST(Trial, IsDecidedByAllRanksTogether) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    Trial trial(true);
    // One rank gains a little, the first loses more.
    const auto seconds = [&](int, bool device) { return !device ? 1.0 : rank == 0 ? 9.0 : 0.9; };
    EXPECT_EQ(played(trial, 20, seconds), times("d", 7) + "hhhd" + times("h", 9));
}

TEST(Trial, IsNoneWhereItIsSwitchedOff) {
    Trial trial(false);
    EXPECT_EQ(played(trial, 300, device_costs), times("d", 300));
}

}  // namespace
}  // namespace minimd
