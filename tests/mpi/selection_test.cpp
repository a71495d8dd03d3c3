#include "selection.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

namespace offpath::mpi {
namespace {

Selection with_ops(const std::string& text) {
    Selection selection;
    selection.ops = parse_ops(text);
    return selection;
}

TEST(Selection, DefaultLeavesTheBarrierToTheHost) {
    const Selection selection = with_ops("");
    EXPECT_TRUE(selection.enabled(Op::ialltoall));
    EXPECT_TRUE(selection.enabled(Op::ibcast));
    EXPECT_FALSE(selection.enabled(Op::ibarrier));
    EXPECT_TRUE(with_ops("all").enabled(Op::ibarrier));
}

TEST(Selection, OpsAreTakenByName) {
    const Selection selection = with_ops("ibcast,ialltoallv");
    EXPECT_TRUE(selection.enabled(Op::ibcast));
    EXPECT_TRUE(selection.enabled(Op::ialltoallv));
    EXPECT_FALSE(selection.enabled(Op::ialltoall));
}

TEST(Selection, UnknownOpsAreNamedInTheError) {
    for (const char* text : {"ibcast,iscan", "ibcast,", ",", "Ibcast", "all,ibcast"}) {
        EXPECT_THROW(parse_ops(text), std::invalid_argument) << text;
    }
    try {
        parse_ops("ibcast,iscan");
    } catch (const std::invalid_argument& error) {
        EXPECT_NE(std::string(error.what()).find("'iscan'"), std::string::npos) << error.what();
    }
}

TEST(Selection, MinBytesMovesEveryThresholdButNothingIsNeverLarge) {
    setenv("OFFPATH_MIN_BYTES", "3M", 1);
    EXPECT_EQ(read_selection().threshold(Op::ialltoallv), 3U << 20);
    EXPECT_EQ(read_selection().threshold(Op::ibcast), 3U << 20);
    setenv("OFFPATH_MIN_BYTES", "0", 1);
    EXPECT_EQ(read_selection().threshold(Op::ialltoall), 1U);
    setenv("OFFPATH_MIN_BYTES", "3 apples", 1);
    EXPECT_THROW(read_selection(), std::invalid_argument);
    unsetenv("OFFPATH_MIN_BYTES");
    EXPECT_GT(read_selection().threshold(Op::ialltoall), 1024U);
}

}  // namespace
}  // namespace offpath::mpi
