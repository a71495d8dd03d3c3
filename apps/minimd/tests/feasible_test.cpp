#include "minimd/setup/feasible.h"

#include <gtest/gtest.h>

#include "messages.h"

namespace minimd {
namespace {

std::string problem(const Vec3& box, double atoms, const Settings& settings = {}) {
    const Decomposition decomposition(MPI_COMM_WORLD, box);
    return usage_error([&] { check_feasible(settings, decomposition, atoms); });
}

TEST(Feasible, IsWhatRanksCanHold) {
    EXPECT_EQ(problem({50, 50, 50}, 1e5), "");
    EXPECT_EQ(problem({1, 1, 1}, 1), "") << "a box may be smaller than the cutoff";
    EXPECT_EQ(problem({1e100, 1, 1}, 1), "");
    EXPECT_NE(problem({1e4, 1e4, 1e4}, 1e14).find("use 100000 ranks or more"), std::string::npos);
}

TEST(Feasible, IsABoxThatIsANumber) {
    Settings settings;
    EXPECT_EQ(problem({1e100, 1, 1}, 1, settings), "");
    settings.precision = Precision::single_precision;
    EXPECT_NE(problem({1e100, 1, 1}, 1, settings).find("a box of 1e+100 x 1 x 1 is none"), std::string::npos);
    EXPECT_NE(problem({0, 1, 1}, 1).find("is none"), std::string::npos);
}

TEST(Feasible, IsACutoffThatEndsSomewhere) {
    for (const Vec3& box : {Vec3{6, 1e-200, 6}, Vec3{1e-3, 1e-3, 1e-3}})
        EXPECT_NE(problem(box, 8).find("cutoff and skin together, 2.8, reach too far"), std::string::npos);
    Settings settings;
    settings.cutoff = 1000;
    EXPECT_NE(problem({1e4, 1e4, 1e4}, 8, settings).find("reach too far"), std::string::npos);
    // The system is so dense that a rank would have more ghosts than it can count.
    settings.cutoff = 20;
    EXPECT_NE(problem({10, 10, 10}, 5e7, settings).find("reach too far"), std::string::npos);
}

}  // namespace
}  // namespace minimd
