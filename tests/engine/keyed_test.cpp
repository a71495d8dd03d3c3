// Keyed messages: messages that meet their receive by a key.
#include "world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

namespace offpath::testing {
namespace {

using memory::BackEnd;

class EngineMail : public ::testing::TestWithParam<std::tuple<BackEnd, std::uint32_t>> {
  protected:
    void send(const void* data, std::size_t bytes, const MessageKey& key, Done* done) {
        ASSERT_EQ(world.engine_of(0).keyed_send(world.team(0), World::range(data, bytes), 1, key, done),
                  Status::in_progress);
    }
    Status recv(void* data, std::size_t bytes, const MessageKey& key, Done* done,
                engine::MessageInfo* info = nullptr) {
        return world.engine_of(1).keyed_recv(world.team(1), World::range(data, bytes), 0, key, info, done);
    }
    bool over(const Done& first, const Done& second) {
        return world.run_until([&] { return first.status.has_value() && second.status.has_value(); });
    }
    static WorldOptions options() {
        WorldOptions made;
        made.memory = std::get<0>(GetParam());
        made.proxies = std::get<1>(GetParam());
        made.engine.stored_bytes = (5 << 20) / 2;
        made.faults = transport::FaultPlan{.seed = 11, .delay_message = 0.4, .delay_completion = 0.2};
        return made;
    }
    World world{options()};
};

TEST_P(EngineMail, MeetsByKeyWhicheverComesFirst) {
    std::mt19937 random(7);
    constexpr std::size_t count = 40, most = 30000;
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::vector<std::vector<std::uint32_t>> out(count), in(count, std::vector<std::uint32_t>(most, 77u));
    std::vector<Done> sent(count), received(count);
    std::vector<engine::MessageInfo> info(count);
    const auto key = [](std::size_t i) { return MessageKey{i % 3, (i / 3) << 33 | i}; };
    for (std::size_t i = 0; i < count; ++i)
        out[i].assign(i % 4 == 0 ? i : random() % most, static_cast<std::uint32_t>(i));
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t n = 0; n < count / 2; ++n)
        send(out[order[n]].data(), out[order[n]].size() * 4, key(order[n]), &sent[order[n]]);
    for (std::size_t n = count; n-- > 0;) {
        const std::size_t i = order[n];
        ASSERT_EQ(recv(in[i].data(), most * 4, key(i), &received[i], &info[i]), Status::in_progress);
        world.round();
    }
    for (std::size_t n = count / 2; n < count; ++n)
        EXPECT_FALSE(received[order[n]].status.has_value()) << "nothing was sent";
    for (std::size_t n = count / 2; n < count; ++n)
        send(out[order[n]].data(), out[order[n]].size() * 4, key(order[n]), &sent[order[n]]);
    ASSERT_TRUE(world.run_until([&] {
        const auto is_over = [](const Done& d) { return d.status.has_value(); };
        return std::all_of(received.begin(), received.end(), is_over) &&
               std::all_of(sent.begin(), sent.end(), is_over);
    }));
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(*received[i].status, Status::ok);
        ASSERT_EQ(*sent[i].status, Status::ok);
        ASSERT_EQ(info[i].bytes, out[i].size() * 4) << "message " << i;
        ASSERT_TRUE(std::equal(out[i].begin(), out[i].end(), in[i].begin()));
        ASSERT_EQ(in[i][out[i].size()], 77u) << "written behind the message";
    }
}

TEST_P(EngineMail, ASendIsNotDoneBeforeItsReceive) {
    int value = 5, got = 0;
    Done sent, received;
    send(&value, sizeof value, {1, 2}, &sent);
    for (int i = 0; i < 100; ++i)
        world.round();
    EXPECT_FALSE(sent.status.has_value());
    ASSERT_EQ(recv(&got, sizeof got, {1, 2}, &received), Status::in_progress);
    ASSERT_TRUE(over(sent, received));
    EXPECT_EQ(*sent.status, Status::ok);
    EXPECT_EQ(got, 5);
}

TEST_P(EngineMail, ASendThatIsDoneHasBeenReceived) {
    constexpr std::size_t messages = 20, ints = 100'000;
    for (std::size_t i = 0; i < messages; ++i) {
        const std::vector<std::size_t> out(ints, i);
        std::vector<std::size_t> in(ints, 0);
        Done sent, received;
        ASSERT_EQ(recv(in.data(), ints * sizeof in[0], {4, i}, &received), Status::in_progress);
        send(out.data(), ints * sizeof out[0], {4, i}, &sent);
        ASSERT_TRUE(world.run_until([&] { return sent.status.has_value(); }));
        ASSERT_EQ(*sent.status, Status::ok);
        ASSERT_TRUE(received.status.has_value()) << "message " << i;
        ASSERT_EQ(*received.status, Status::ok);
        ASSERT_EQ(in, out);
    }
}

TEST_P(EngineMail, TruncationEndsBothAndWritesNothing) {
    std::vector<char> value(100000, 1), got(99999, 2);
    Done sent, received;
    engine::MessageInfo info;
    ASSERT_EQ(recv(got.data(), got.size(), {9, 9}, &received, &info), Status::in_progress);
    send(value.data(), value.size(), {9, 9}, &sent);
    ASSERT_TRUE(over(sent, received));
    EXPECT_EQ(*received.status, Status::truncated);
    EXPECT_EQ(*sent.status, Status::ok);
    EXPECT_EQ(info.bytes, value.size());
    EXPECT_EQ(got, std::vector<char>(99999, 2));
}

TEST_P(EngineMail, CancelTakesBackWhatNothingHasMet) {
    int value = 3, got = 0, again = 0;
    Done sent, first, second, third;
    ASSERT_EQ(recv(&got, 4, {4, 4}, &first), Status::in_progress);
    EXPECT_EQ(recv(&again, 4, {4, 4}, &second), Status::invalid) << "the key is in use";
    world.engine_of(1).keyed_cancel(world.team(1), 0, {4, 5});  // there is no such receive
    world.engine_of(1).keyed_cancel(world.team(1), 0, {4, 4});
    ASSERT_TRUE(over(first, first));
    EXPECT_EQ(*first.status, Status::canceled);
    send(&value, 4, {4, 4}, &sent);
    ASSERT_EQ(recv(&again, 4, {4, 4}, &third), Status::in_progress);
    ASSERT_TRUE(over(sent, third));
    EXPECT_EQ(again, 3);
    EXPECT_EQ(got, 0);
    world.engine_of(1).keyed_cancel(world.team(1), 0, {4, 4});  // too late
}

TEST_P(EngineMail, AStoredMessageFreesItsSender) {
    std::vector<int> out(50000), early(50000), late(50000), small(10);
    std::iota(out.begin(), out.end(), 5);
    const std::size_t bytes = out.size() * sizeof(int);
    for (int rounds : {0, 1, 3, 1000}) {
        std::fill(late.begin(), late.end(), 0);
        Done sent, received;
        engine::MessageInfo info;
        send(out.data(), bytes, {6, 1}, &sent);
        world.run_until([] { return false; });
        EXPECT_FALSE(sent.status.has_value());
        world.engine_of(0).keyed_store(world.team(0), 1, {6, 2});  // there is no such message
        world.engine_of(0).keyed_store(world.team(0), 1, {6, 1});
        world.engine_of(0).keyed_store(world.team(0), 1, {6, 1});
        for (int i = 0; i < rounds; ++i)
            world.round();
        if (rounds == 1000) {
            EXPECT_EQ(sent.status, Status::ok) << "it was to be stored";
        }
        ASSERT_EQ(recv(late.data(), bytes, {6, 1}, &received, &info), Status::in_progress);
        ASSERT_TRUE(over(sent, received));
        EXPECT_EQ(*sent.status, Status::ok);
        EXPECT_EQ(*received.status, Status::ok);
        EXPECT_EQ(info.bytes, bytes);
        EXPECT_EQ(late, out);
    }
    Done sent, received;
    send(out.data(), bytes, {6, 3}, &sent);
    world.engine_of(0).keyed_store(world.team(0), 1, {6, 3});
    ASSERT_TRUE(world.run_until([&] { return sent.status.has_value(); }));
    ASSERT_EQ(recv(small.data(), 40, {6, 3}, &received), Status::in_progress);
    ASSERT_TRUE(over(sent, received));
    EXPECT_EQ(*received.status, Status::truncated);
    EXPECT_EQ(small, std::vector<int>(10));
}

TEST_P(EngineMail, NoMoreIsStoredThanThereIsRoomFor) {
    std::vector<char> out(1 << 20);
    std::array<Done, 3> sent;
    for (std::size_t i = 0; i < sent.size(); ++i)
        send(out.data(), out.size(), {7, i}, &sent[i]);
    world.run_until([] { return false; });
    for (std::size_t i = 0; i < sent.size(); ++i)
        world.engine_of(0).keyed_store(world.team(0), 1, {7, i});
    world.run_until([] { return false; });
    EXPECT_EQ(
        std::count_if(sent.begin(), sent.end(), [](const Done& done) { return done.status.has_value(); }), 2)
        << "room is for two and a half";
    for (std::size_t i = 0; i < sent.size(); ++i) {
        Done received;
        ASSERT_EQ(recv(out.data(), out.size(), {7, i}, &received), Status::in_progress);
        ASSERT_TRUE(over(sent[i], received));
        EXPECT_EQ(*received.status, Status::ok);
    }
}

TEST_P(EngineMail, EndsWhenTheOtherRankIsLost) {
    int value = 3, got = 0;
    Done sent, received;
    send(&value, 4, {1, 1}, &sent);
    ASSERT_EQ(
        world.engine_of(0).keyed_recv(world.team(0), World::range(&got, 4), 1, {1, 1}, nullptr, &received),
        Status::in_progress);
    world.round();
    ASSERT_TRUE(world.run_until(
        [&] { return world.engine_of(1).close_session(world.session(1), Status::peer_lost); }));
    ASSERT_TRUE(over(sent, received));
    EXPECT_EQ(*sent.status, Status::peer_lost);
    EXPECT_EQ(*received.status, Status::peer_lost);
}

// Memory that is not read through a pointer.
class EngineMailByCopies : public EngineMail {};

TEST_P(EngineMailByCopies, AMessageThatCannotBeReadEndsItsReceive) {
    std::vector<char> out(100000), in(100000);
    Done sent, received;
    send(out.data(), out.size(), {8, 1}, &sent);
    world.memory(0).forbid();
    ASSERT_EQ(recv(in.data(), in.size(), {8, 1}, &received), Status::in_progress);
    ASSERT_TRUE(over(sent, received));
    EXPECT_EQ(*sent.status, Status::access);
    EXPECT_EQ(*received.status, Status::access);
}

TEST_P(EngineMail, WhatIsStoredOutlivesItsSender) {
    std::vector<int> out(50000), in(50000);
    std::iota(out.begin(), out.end(), 9);
    const std::size_t bytes = out.size() * sizeof(int);
    Done sent, received;
    send(out.data(), bytes, {9, 1}, &sent);
    world.engine_of(0).keyed_store(world.team(0), 1, {9, 1});
    // The two messages may arrive in the other order.
    for (int i = 0; i < 100 && !world.run_until([&] { return sent.status.has_value(); }); ++i)
        world.engine_of(0).keyed_store(world.team(0), 1, {9, 1});
    ASSERT_EQ(sent.status, Status::ok);
    world.run_until([] { return false; });
    ASSERT_TRUE(world.run_until(
        [&] { return world.engine_of(0).close_session(world.session(0), Status::peer_lost); }));
    world.run_until([] { return false; });
    ASSERT_EQ(recv(in.data(), bytes, {9, 1}, &received), Status::in_progress);
    ASSERT_TRUE(over(received, received));
    EXPECT_EQ(*received.status, Status::ok);
    EXPECT_EQ(in, out);
    Done never;
    EXPECT_EQ(recv(in.data(), bytes, {9, 2}, &never), Status::peer_lost);
}

TEST_P(EngineMail, NothingIsStoredForASenderThatIsGone) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        WorldOptions options = EngineMail::options();
        options.faults->seed = seed;
        World other(options);
        const std::vector<char> out(100000);
        Done sent;
        ASSERT_EQ(other.engine_of(0).keyed_send(other.team(0), World::range(out.data(), out.size()), 1,
                                                {1, 1}, &sent),
                  Status::in_progress);
        other.engine_of(0).keyed_store(other.team(0), 1, {1, 1});
        ASSERT_TRUE(other.run_until(
            [&] { return other.engine_of(0).close_session(other.session(0), Status::peer_lost); }));
        other.run_until([] { return false; });
        EXPECT_EQ(other.engine_of(1).outstanding(*other.session(1)), 0u) << "seed " << seed;
    }
}

// If there is no memory for a message, it stays where it is.
TEST_P(EngineMail, WhatCannotBeStoredWaitsForItsReceive) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer's allocator does not return";
#endif
    WorldOptions options = EngineMail::options();
    options.engine.stored_bytes = UINT64_MAX;
    World other(options);
    const char out = 0;
    char in = 0;
    Done sent, received;
    constexpr std::size_t too_much = std::size_t{1} << 60;
    ASSERT_EQ(other.engine_of(0).keyed_send(other.team(0), World::range(&out, too_much), 1, {1, 1}, &sent),
              Status::in_progress);
    other.run_until([] { return false; });
    other.engine_of(0).keyed_store(other.team(0), 1, {1, 1});
    other.run_until([] { return false; });
    EXPECT_FALSE(sent.status.has_value());
    ASSERT_EQ(
        other.engine_of(1).keyed_recv(other.team(1), World::range(&in, 1), 0, {1, 1}, nullptr, &received),
        Status::in_progress);
    ASSERT_TRUE(other.run_until([&] { return sent.status && received.status; }));
    EXPECT_EQ(*received.status, Status::truncated);
    EXPECT_EQ(*sent.status, Status::ok);
    const engine::Counters& counters = other.engine_of(1).counters();
    EXPECT_EQ(counters.instances_started, counters.instances_done + counters.instances_failed);
}

INSTANTIATE_TEST_SUITE_P(Memories, EngineMail,
                         ::testing::Combine(::testing::Values(BackEnd::map, BackEnd::cma, BackEnd::staged),
                                            ::testing::Values(1u, 2u)));
INSTANTIATE_TEST_SUITE_P(Memories, EngineMailByCopies,
                         ::testing::Combine(::testing::Values(BackEnd::cma, BackEnd::staged),
                                            ::testing::Values(1u, 2u)));

}  // namespace
}  // namespace offpath::testing
