#include "runtime/selection.h"

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

TEST(Selection, BlockingFormsAreAskedForByName) {
    EXPECT_FALSE(with_ops("").enabled(Op::iallreduce, Form::blocking));
    EXPECT_FALSE(with_ops("all").enabled(Op::iallreduce, Form::blocking));
    EXPECT_TRUE(with_ops("blocking").enabled(Op::iallreduce, Form::blocking));
    EXPECT_FALSE(with_ops("blocking").enabled(Op::iallreduce));
    const Selection both = with_ops("default,allreduce");
    EXPECT_TRUE(both.enabled(Op::iallreduce, Form::blocking));
    EXPECT_FALSE(both.enabled(Op::ibcast, Form::blocking));
    EXPECT_TRUE(both.enabled(Op::ibcast));
    EXPECT_TRUE(both.enabled(Op::ibcast, Form::persistent));
    EXPECT_FALSE(both.enabled(Op::ibarrier));
}

TEST(Selection, CallsAreNamedAsTheUserKnowsThem) {
    EXPECT_EQ(call_name(Op::ireduce_scatter_block), "MPI_Ireduce_scatter_block");
    EXPECT_EQ(call_name(Op::ineighbor_alltoallw, Form::blocking), "MPI_Neighbor_alltoallw");
    EXPECT_EQ(call_name(Op::ibcast, Form::persistent), "the persistent MPI_Bcast");
}

TEST(Selection, UnknownOpsAreNamedInTheError) {
    for (const char* text : {"ibcast,iscam", "ibcast,", ",", "Ibcast", "ibcastt"}) {
        EXPECT_THROW(parse_ops(text), std::invalid_argument) << text;
    }
    try {
        parse_ops("ibcast,iscam");
    } catch (const std::invalid_argument& error) {
        EXPECT_NE(std::string(error.what()).find("'iscam'"), std::string::npos) << error.what();
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
