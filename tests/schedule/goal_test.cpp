#include "schedule/goal.h"
#include "contains.h"
#include "schedule/builder.h"

#include <gtest/gtest.h>

namespace offpath::schedule {
namespace {

using offpath::testing::contains;

TEST(Goal, WritesMessagesCopiesAndDependencies) {
    std::vector<Schedule> schedules;
    Builder a(0, 2), b(1, 2);
    a.user_slot(4000);
    const OpId copy = a.copy({0, 0}, {0, 2000}, 1000);
    const OpId send = a.send(1, 1000000000000, {0, 2000}, 1000);
    a.depend(send, copy);
    b.user_slot(4000);
    const OpId recv = b.recv(0, 1000000000000, {0, 0}, 1000);
    const OpId compute = b.compute({1, {}, {{{0, 0}, 200}, {{0, 0}, 300}}});
    b.depend(compute, recv);
    schedules.push_back(a.finish());
    schedules.push_back(b.finish());
    EXPECT_EQ(to_goal(schedules, {.copy_ns_per_byte = 0.5, .compute_ns_per_byte = 2}),
              "num_ranks 2\n"
              "\n"
              "rank 0 {\n"
              "o0: calc 500\n"
              "o1: send 1000b to 1 tag 0\n"
              "o1 requires o0\n"
              "}\n"
              "\n"
              "rank 1 {\n"
              "o0: recv 1000b from 0 tag 0\n"
              "o1: calc 1000\n"
              "o1 requires o0\n"
              "}\n");
}

TEST(Goal, NumbersTagsAlikeAtBothEnds) {
    std::vector<Schedule> schedules;
    Builder a(0, 2), b(1, 2);
    a.user_slot(8);
    b.user_slot(8);
    a.send(1, UINT64_MAX, {0, 0}, 1);
    a.send(1, 5, {0, 0}, 2);
    b.recv(0, 5, {0, 0}, 2);
    b.recv(0, UINT64_MAX, {0, 0}, 1);
    schedules.push_back(a.finish());
    schedules.push_back(b.finish());
    const std::string text = to_goal(schedules);
    for (const char* line :
         {"send 1b to 1 tag 1\n", "send 2b to 1 tag 0\n", "recv 2b from 0 tag 0\n", "recv 1b from 0 tag 1\n"})
        EXPECT_TRUE(contains(text, line));
}

TEST(Goal, SpellsSignalsOutAsMessages) {
    std::vector<Schedule> schedules;
    Builder a(0, 2), b(1, 2);
    a.user_slot(8);
    const OpId copy = a.copy({0, 0}, {0, 4}, 4);
    a.depend(a.signal(1, 3), copy);
    b.wait(3, 1);
    schedules.push_back(a.finish());
    schedules.push_back(b.finish());
    EXPECT_EQ(to_goal(schedules, {.copy_ns_per_byte = 1}),
              "num_ranks 2\n"
              "\n"
              "rank 0 {\n"
              "o0: calc 4\n"
              "o1: send 1b to 1 tag 0\n"
              "o1 requires o0\n"
              "}\n"
              "\n"
              "rank 1 {\n"
              "s0_o1: recv 1b from 0 tag 0\n"
              "o0: calc 0\n"
              "o0 requires s0_o1\n"
              "}\n");
}

TEST(Goal, KeepsTrafficOfARankWithItselfLocal) {
    Builder builder(0, 1);
    builder.user_slot(2000);
    builder.send(0, 7, {0, 0}, 1000);
    builder.recv(0, 7, {0, 1000}, 1000);
    builder.signal(0, 1);
    builder.wait(1, 1);
    const std::vector<Schedule> schedules{builder.finish()};
    EXPECT_EQ(to_goal(schedules, {.copy_ns_per_byte = 1}),
              "num_ranks 1\n\nrank 0 {\no0: calc 0\no1: calc 1000\no1 requires o0\no2: calc 0\no3: calc 0\n"
              "o3 requires o2\n}\n");
}

TEST(Goal, GivesIdleRanksALine) {
    const std::vector<Schedule> schedules{Schedule(0, 1, {}, {}, {})};
    EXPECT_EQ(to_goal(schedules), "num_ranks 1\n\nrank 0 {\ncalc 0\n}\n");
}

}  // namespace
}  // namespace offpath::schedule
