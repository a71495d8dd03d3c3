// Proxies that fall silent without a broken connection.
#include "world.h"

#include <gtest/gtest.h>

namespace offpath::testing {
namespace {

constexpr std::uint64_t ms = 1'000'000, limit = 1000 * ms, interval = 125 * ms;

class Beats : public ::testing::Test {
  protected:
    // One message from rank 1 to rank 0, so that both have a way to each other; then one that never comes.
    void SetUp() override {
        Done sent, received;
        ASSERT_EQ(receive(0, 1, received), Status::in_progress);
        ASSERT_EQ(world.engine_of(1).send(world.team(1), World::range(out.data(), out.size()), 0, 1, &sent),
                  Status::in_progress);
        ASSERT_TRUE(world.run_until([&] { return sent.status && received.status; }));
        ASSERT_EQ(*received.status, Status::ok);
        ASSERT_EQ(receive(0, 1, waiting), Status::in_progress);
    }
    Status receive(std::uint32_t rank, std::uint32_t from, Done& done) {
        return world.engine_of(rank).recv(world.team(rank), World::range(in.data(), in.size()), from, 1,
                                          &info, &done);
    }
    // Time passes for the proxies that are not stopped, until `over` or for at most `most`.
    template <typename Over>
    std::uint64_t pass(std::uint64_t most, Over&& over) {
        for (std::uint64_t passed = 0; passed < most; passed += interval) {
            now += interval;
            for (std::uint32_t rank = 0; rank < 2; ++rank)
                if (!world.stopped(rank)) world.engine_of(rank).beat(now, limit);
            for (int i = 0; i < 50; ++i)
                world.round();
            if (over()) return passed + interval;
        }
        return 0;
    }
    void pass(std::uint64_t time) {
        pass(time, [] { return false; });
    }

    World world{{}};
    std::vector<char> out = std::vector<char>(9000, 'o'), in = std::vector<char>(9000);
    engine::MessageInfo info;
    Done waiting;
    std::uint64_t now = 77 * ms;
};

TEST_F(Beats, AProxyThatGoesRoundIsNotLost) {
    pass(60 * limit);
    EXPECT_FALSE(waiting.status);
}

TEST_F(Beats, ASilentOneIsLostAndToldWhenItIsBack) {
    pass(limit);
    world.stop(1);
    EXPECT_TRUE(world.engine_of(0).awaits_others());
    const std::uint64_t took = pass(10 * limit, [&] { return waiting.status.has_value(); });
    ASSERT_TRUE(waiting.status);
    EXPECT_EQ(*waiting.status, Status::peer_lost);
    EXPECT_GE(took, limit);
    EXPECT_LE(took, limit + 2 * interval);
    EXPECT_FALSE(world.engine_of(0).awaits_others());
    world.go_on(1);
    Done theirs;
    ASSERT_EQ(receive(1, 0, theirs), Status::in_progress);
    EXPECT_GT(pass(2 * limit, [&] { return theirs.status.has_value(); }), 0u);
    ASSERT_TRUE(theirs.status);
    EXPECT_EQ(*theirs.status, Status::peer_lost);
}

TEST_F(Beats, APauseWithinTheLimitIsSurvived) {
    pass(limit);
    world.stop(1);
    pass(limit - 2 * interval);
    world.go_on(1);
    pass(5 * limit);
    EXPECT_FALSE(waiting.status);
}

// The asker was stopped itself; the answer may have come meanwhile.
TEST_F(Beats, TimeInWhichNobodyAskedDoesNotCount) {
    pass(limit);
    world.engine_of(0).beat(now += interval, limit);
    now += 3600'000 * ms;
    world.engine_of(0).beat(now, limit);
    pass(limit);
    EXPECT_FALSE(waiting.status);
}

TEST_F(Beats, NobodyIsAskedWhenNothingIsOutstanding) {
    Done sent;
    ASSERT_EQ(world.engine_of(1).send(world.team(1), World::range(out.data(), out.size()), 0, 1, &sent),
              Status::in_progress);
    ASSERT_TRUE(world.run_until([&] { return sent.status && waiting.status; }));
    const auto before = world.engine_of(0).counters().messages_sent;
    EXPECT_FALSE(world.engine_of(0).awaits_others());
    pass(10 * limit);
    EXPECT_EQ(world.engine_of(0).counters().messages_sent, before);
}

}  // namespace
}  // namespace offpath::testing
