#include "schedule/schedule.h"
#include "schedule/builder.h"

#include <gtest/gtest.h>

namespace offpath::schedule {
namespace {

std::vector<OpId> list(std::span<const OpId> ids) {
    return {ids.begin(), ids.end()};
}

TEST(Schedule, KeepsTheGraphThatTheBuilderWroteDown) {
    Builder builder(1, 4);
    const auto slot = builder.user_slot(100), scratch = builder.scratch_slot(50);
    const OpId recv = builder.recv(0, 7, {scratch, 0}, 50);
    const OpId reduce = builder.reduce(DataType::int16, Reduction::sum, {scratch, 0}, {slot, 50}, 50);
    const OpId send = builder.send(2, 7, {slot, 50}, 50);
    const OpId last = builder.send(3, 7, {slot, 10}, 20);
    builder.depend(reduce, recv);
    builder.depend(last, {recv, reduce});
    builder.depend(send, reduce);
    const Schedule schedule = builder.finish();

    EXPECT_EQ(schedule.rank(), 1u);
    EXPECT_EQ(schedule.team_size(), 4u);
    ASSERT_EQ(schedule.slots().size(), 2u);
    EXPECT_EQ(schedule.slots()[0], (Slot{SlotKind::user, 100}));
    EXPECT_EQ(schedule.slots()[1], (Slot{SlotKind::scratch, 50}));
    ASSERT_EQ(schedule.ops().size(), 4u);
    EXPECT_EQ(schedule.ops()[last].peer, 3u);
    EXPECT_EQ(schedule.ops()[last].src, (BufferRef{0, 10}));
    EXPECT_EQ(list(schedule.successors(recv)), (std::vector<OpId>{reduce, last}));
    EXPECT_EQ(list(schedule.successors(reduce)), (std::vector<OpId>{send, last}));
    EXPECT_TRUE(schedule.successors(last).empty());
    EXPECT_EQ(schedule.dependency_count(recv), 0u);
    EXPECT_EQ(schedule.dependency_count(last), 2u);
    EXPECT_EQ(schedule.bytes_sent(), 70u);
}

TEST(Schedule, MergesDependenciesThatAreGivenTwice) {
    Builder builder(0, 1);
    builder.user_slot(8);
    const OpId a = builder.copy({0, 0}, {0, 4}, 4), b = builder.copy({0, 4}, {0, 0}, 4);
    builder.depend(b, a);
    builder.depend(b, {a, a});
    const Schedule schedule = builder.finish();
    EXPECT_EQ(schedule.dependency_count(b), 1u);
    EXPECT_EQ(schedule.successors(a).size(), 1u);
}

TEST(Schedule, DoesNotDependOnTheOrderOfDependencies) {
    const auto build = [](bool reverse) {
        Builder builder(0, 2);
        for (std::uint64_t i = 0; i < 3; ++i)
            builder.signal(1, i);
        builder.depend(reverse ? 2 : 1, 0);
        builder.depend(reverse ? 1 : 2, 0);
        return builder.finish();
    };
    EXPECT_EQ(build(false), build(true));
}

TEST(Schedule, RefusesADependencyThatNamesNoOp) {
    Builder builder(0, 2);
    builder.signal(1, 0);
    builder.depend(0, 5);
    EXPECT_THROW(builder.finish(), std::out_of_range);
}

TEST(Schedule, CountsOnlyBytesThatLeaveTheRank) {
    Builder builder(0, 2);
    builder.user_slot(64);
    builder.send(0, 0, {0, 0}, 10);
    builder.recv(0, 0, {0, 10}, 10);
    builder.recv(1, 0, {0, 20}, 8);
    builder.send(1, 0, {0, 0}, 3);
    EXPECT_EQ(builder.finish().bytes_sent(), 3u);
}

TEST(Schedule, KnowsWhichSlotsItUsesWhole) {
    Builder builder(0, 2);
    for (int i = 0; i < 4; ++i)
        builder.user_slot(64);
    builder.send(1, 0, {0, 0}, 40);
    builder.send(1, 1, {0, 30}, 34);
    builder.recv(1, 0, {1, 32}, 32);
    builder.copy({0, 0}, {1, 0}, 32);
    builder.recv(1, 1, {2, 0}, 30);
    builder.recv(1, 2, {2, 31}, 33);
    builder.recv(1, 3, {3, 0}, 63);
    const Schedule schedule = builder.finish();
    // The third lacks a byte in the middle, the last one its last byte.
    EXPECT_EQ(schedule.slots_used_whole(), (std::vector<bool>{true, true, false, false}));
}

}  // namespace
}  // namespace offpath::schedule
