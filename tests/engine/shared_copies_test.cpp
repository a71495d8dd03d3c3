// Shared copies: a rank that waits makes parts of the copy of its own block, its proxy the others.
#include "collectives/selection.h"
#include "engine/schedules/plan.h"
#include "schedule/builder.h"
#include "world.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace offpath::testing {
namespace {

using memory::BackEnd;

// One rank alone: its alltoall is a copy of its own block and nothing else.
class SharedCopies : public ::testing::TestWithParam<BackEnd> {
  protected:
    SharedCopies() {
        for (std::size_t i = 0; i < bytes; ++i)
            from_[i] = static_cast<std::byte>((i * 31 + (i >> 11)) & 0xff);
    }

    static WorldOptions options() {
        WorldOptions options;
        options.ranks = options.proxies = 1;
        options.memory = GetParam();
        return options;
    }

    Status start() {
        const memory::HostRange buffers[] = {World::range(from_.data(), bytes),
                                             World::range(to_.data(), bytes)};
        return world_.engine_of(0).start(world_.team(0), plan_, sequence_++, buffers, &done_, &word_);
    }
    // As a client does. Returns whether there was a part to make.
    bool help() {
        const shared_parts::Part part = shared_parts::take(word_, bytes);
        std::copy_n(from_.data() + part.offset, part.bytes, to_.data() + part.offset);
        helped_ += part.bytes;
        return part.bytes > 0;
    }
    bool over() const { return done_.status.has_value(); }
    std::uint64_t by_proxy() { return world_.engine_of(0).counters().bytes_local; }
    void expect_whole() {
        ASSERT_TRUE(over());
        EXPECT_EQ(*done_.status, Status::ok);
        EXPECT_TRUE(from_ == to_);
        EXPECT_EQ(helped_ + by_proxy(), bytes);
    }

    static constexpr std::size_t bytes = 5 * shared_parts::part_bytes + 4711;
    std::vector<std::byte> from_{bytes}, to_{bytes, std::byte{0xEE}};
    shared_parts::Word word_{0};
    engine::Plan plan_{collectives::alltoall({0, 1}, bytes)};
    std::uint32_t sequence_ = 0;
    std::uint64_t helped_ = 0;
    Done done_;
    World world_{options()};
};

TEST_P(SharedCopies, TheProxyMakesAllOfItForARankThatComputes) {
    ASSERT_EQ(start(), Status::in_progress);
    EXPECT_FALSE(help());  // the proxy has not begun
    ASSERT_TRUE(world_.run_until([&] { return over(); }));
    EXPECT_FALSE(help());
    EXPECT_EQ(by_proxy(), bytes);
    expect_whole();
}

TEST_P(SharedCopies, AWaitingRankMakesWhatItsProxyHasNotBegun) {
    ASSERT_EQ(start(), Status::in_progress);
    while (word_ == 0)
        world_.round();
    while (help()) {
    }
    ASSERT_TRUE(world_.run_until([&] { return over(); }));
    EXPECT_LE(by_proxy(), 2 * shared_parts::part_bytes);
    expect_whole();
}

TEST_P(SharedCopies, BothTakeTurns) {
    ASSERT_EQ(start(), Status::in_progress);
    while (word_ == 0)
        world_.round();
    for (int round = 0; !over() && round < 100'000; ++round) {
        if (round % 40 == 20) help();
        world_.round();
    }
    EXPECT_GT(helped_, 0u);
    EXPECT_GT(by_proxy(), 0u);
    expect_whole();
}

TEST_P(SharedCopies, AWordWithNonsenseEndsLikeAnyOther) {
    ASSERT_EQ(start(), Status::in_progress);
    for (int round = 0; !over() && round < 100'000; ++round) {
        world_.round();
        if (word_ != 0) word_ = round % 3 == 0 ? UINT64_MAX : 1;
    }
    EXPECT_TRUE(over());
    EXPECT_LE(by_proxy(), 2 * bytes);
}

TEST_P(SharedCopies, ASessionEndsInTheMiddle) {
    ASSERT_EQ(start(), Status::in_progress);
    while (word_ == 0)
        world_.round();
    help();
    engine::Session* const session = world_.session(0);
    ASSERT_TRUE(
        world_.run_until([&] { return world_.engine_of(0).close_session(session, Status::canceled); }));
    ASSERT_TRUE(over());
    EXPECT_EQ(*done_.status, Status::canceled);
}

INSTANTIATE_TEST_SUITE_P(Memory, SharedCopies, ::testing::Values(BackEnd::map, BackEnd::cma, BackEnd::staged),
                         [](const auto& made) { return std::string(memory::to_string(made.param)); });

TEST(SharedCopy, IsTheOnlyOneThatNothingDependsOn) {
    using schedule::Builder;
    using schedule::Schedule;
    const auto made = [](auto&& add) {
        Builder builder(0, 2);
        const auto send = builder.user_slot(64), recv = builder.user_slot(64);
        add(builder, send, recv);
        return builder.finish().shared_copy();
    };
    EXPECT_EQ(made([](Builder& b, auto send, auto recv) {
                  b.send(1, 0, {send, 32}, 32);
                  b.copy({send, 0}, {recv, 0}, 32);
              }),
              1u);
    EXPECT_EQ(made([](Builder& b, auto send, auto recv) {
                  b.copy({send, 0}, {recv, 0}, 32);
                  b.copy({send, 32}, {recv, 32}, 32);
              }),
              Schedule::npos);
    EXPECT_EQ(made([](Builder& b, auto send, auto recv) {
                  const auto copy = b.copy({send, 0}, {recv, 0}, 32);
                  b.depend(b.send(1, 0, {recv, 0}, 32), copy);
              }),
              Schedule::npos);
    EXPECT_EQ(made([](Builder& b, auto, auto recv) {
                  const auto arrived = b.recv(1, 0, {recv, 0}, 32);
                  b.depend(b.copy({recv, 0}, {recv, 32}, 32), arrived);
              }),
              Schedule::npos);
    EXPECT_EQ(made([](Builder& b, auto, auto recv) {
                  b.copy({b.scratch_slot(32), 0}, {recv, 0}, 32);
              }),
              Schedule::npos);
}

}  // namespace
}  // namespace offpath::testing
