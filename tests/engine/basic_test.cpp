// Basic sends and receives: matching, order, wildcards, truncation; and the loss of a rank or proxy.
#include "collectives/selection.h"
#include "engine/schedules/plan.h"
#include "world.h"

#include <gtest/gtest.h>

#include <random>

namespace offpath::testing {
namespace {

using memory::BackEnd;

class EngineBasic : public ::testing::TestWithParam<std::tuple<BackEnd, std::uint32_t>> {
  protected:
    WorldOptions options(std::uint32_t ranks) const {
        WorldOptions made;
        made.ranks = ranks;
        made.memory = std::get<0>(GetParam());
        made.proxies = std::min(ranks, std::get<1>(GetParam()));
        made.faults = transport::FaultPlan{.seed = 3, .delay_message = 0.4, .delay_completion = 0.2};
        return made;
    }
};

TEST_P(EngineBasic, MessagesOfOnePairArriveInOrderWhateverTheirSize) {
    World world(options(2));
    std::mt19937 random(5);
    constexpr std::size_t count = 60;
    std::vector<std::vector<std::uint32_t>> out(count), in(count, std::vector<std::uint32_t>(10000));
    std::vector<Done> sent(count), received(count);
    std::vector<engine::MessageInfo> info(count);
    for (std::size_t i = 0; i < count; ++i) {
        out[i].assign(random() % 2 ? random() % 50 : random() % 10000, static_cast<std::uint32_t>(i));
        ASSERT_EQ(world.engine_of(0).send(world.team(0), World::range(out[i].data(), out[i].size() * 4), 1, 9,
                                          &sent[i]),
                  Status::in_progress);
        if (i % 3 == 0) world.round();
    }
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t source = i % 2 ? matching::any : 0, tag = i % 5 ? 9 : matching::any;
        ASSERT_EQ(world.engine_of(1).recv(world.team(1), World::range(in[i].data(), 40000), source, tag,
                                          &info[i], &received[i]),
                  Status::in_progress);
    }
    ASSERT_TRUE(world.run_until([&] {
        return std::all_of(received.begin(), received.end(),
                           [](const Done& d) { return d.status.has_value(); }) &&
               std::all_of(sent.begin(), sent.end(), [](const Done& d) { return d.status.has_value(); });
    }));
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(*received[i].status, Status::ok);
        ASSERT_EQ(*sent[i].status, Status::ok);
        ASSERT_EQ(info[i].bytes, out[i].size() * 4) << "message " << i;
        ASSERT_EQ(info[i].source, 0u);
        ASSERT_EQ(info[i].tag, 9u);
        ASSERT_TRUE(std::equal(out[i].begin(), out[i].end(), in[i].begin()));
    }
}

TEST_P(EngineBasic, TagsAndSourcesSelect) {
    World world(options(3));
    const std::uint32_t value[2] = {10, 20};
    std::vector<std::uint32_t> got(3, 0);
    Done sends[3], recvs[3];
    engine::MessageInfo info[3];
    world.engine_of(2).recv(world.team(2), World::range(&got[0], 4), matching::any, 8, &info[0], &recvs[0]);
    world.engine_of(2).recv(world.team(2), World::range(&got[1], 4), 1, 7, &info[1], &recvs[1]);
    world.engine_of(2).recv(world.team(2), World::range(&got[2], 4), 0, matching::any, &info[2], &recvs[2]);
    world.engine_of(0).send(world.team(0), World::range(&value[0], 4), 2, 7, &sends[0]);
    world.engine_of(1).send(world.team(1), World::range(&value[1], 4), 2, 7, &sends[1]);
    ASSERT_TRUE(world.run_until([&] { return recvs[1].status && recvs[2].status; }));
    EXPECT_FALSE(recvs[0].status.has_value());
    EXPECT_EQ(got, (std::vector<std::uint32_t>{0, 20, 10}));
    world.engine_of(1).send(world.team(1), World::range(&value[1], 4), 2, 8, &sends[2]);
    ASSERT_TRUE(world.run_until([&] { return recvs[0].status.has_value(); }));
    EXPECT_EQ(info[0].source, 1u);
    EXPECT_EQ(info[0].tag, 8u);
}

TEST_P(EngineBasic, LongerMessageIsTruncatedAndTheSenderGoesOn) {
    World world(options(2));
    for (std::size_t bytes : {std::size_t{64}, std::size_t{50000}}) {
        std::vector<std::byte> out(bytes, std::byte{1}), in(bytes, std::byte{2});
        Done sent, received;
        engine::MessageInfo info;
        world.engine_of(0).send(world.team(0), World::range(out.data(), bytes), 1, 1, &sent);
        world.engine_of(1).recv(world.team(1), World::range(in.data(), bytes - 1), 0, 1, &info, &received);
        ASSERT_TRUE(world.run_until([&] { return sent.status && received.status; }));
        EXPECT_EQ(*received.status, Status::truncated);
        EXPECT_EQ(*sent.status, Status::ok);
        EXPECT_EQ(in.back(), std::byte{2});
    }
}

TEST_P(EngineBasic, CloseSessionTellsThePeers) {
    World world(options(3));
    std::vector<std::byte> data(100000);
    Done lost_recv, lost_send, own;
    engine::MessageInfo info;
    world.engine_of(0).recv(world.team(0), World::range(data.data(), data.size()), 1, 1, &info, &lost_recv);
    world.engine_of(2).send(world.team(2), World::range(data.data(), data.size()), 1, 5, &lost_send);
    world.engine_of(1).recv(world.team(1), World::range(data.data(), 10), 0, 2, &info, &own);
    for (int i = 0; i < 20; ++i)
        world.round();
    ASSERT_FALSE(lost_recv.status || lost_send.status || own.status);
    ASSERT_FALSE(world.engine_of(1).has_work());
    world.engine_of(1).close_session(world.session(1), Status::peer_lost);
    EXPECT_TRUE(world.engine_of(1).has_work()) << "whoever sleeps now leaves the peers untold";
    ASSERT_TRUE(world.run_until(
        [&] { return world.engine_of(1).close_session(world.session(1), Status::peer_lost); }));
    EXPECT_EQ(own.status, Status::peer_lost);
    ASSERT_TRUE(world.run_until([&] { return lost_recv.status && lost_send.status; }));
    EXPECT_EQ(*lost_recv.status, Status::peer_lost);
    EXPECT_EQ(*lost_send.status, Status::peer_lost);
    // A later send gets the error too.
    Done late;
    EXPECT_EQ(world.engine_of(0).send(world.team(0), World::range(data.data(), 4), 1, 1, &late),
              Status::peer_lost);
}

INSTANTIATE_TEST_SUITE_P(Memory, EngineBasic,
                         ::testing::Combine(::testing::Values(BackEnd::map, BackEnd::cma, BackEnd::staged),
                                            ::testing::Values(1u, 3u)),
                         [](const auto& made) {
                             return std::string(memory::to_string(std::get<0>(made.param))) +
                                    (std::get<1>(made.param) == 1 ? "OneProxy" : "ThreeProxies");
                         });

// Runs an alltoall with an accident after `rounds` rounds. No rank may hang, and no completion may be
// missing.
void alltoall_with_accident(std::uint32_t rounds, bool kill_proxy) {
    WorldOptions options;
    options.ranks = options.proxies = 4;
    World world(options);
    constexpr std::size_t bytes = 60000;
    std::vector<std::unique_ptr<engine::Plan>> plans;
    std::vector<std::vector<std::byte>> send(4, std::vector<std::byte>(4 * bytes)),
        recv(4, std::vector<std::byte>(4 * bytes));
    std::vector<Done> done(4);
    for (std::uint32_t r = 0; r < 4; ++r) {
        plans.push_back(std::make_unique<engine::Plan>(collectives::alltoall({r, 4}, bytes)));
        const memory::HostRange buffers[] = {World::range(send[r].data(), 4 * bytes),
                                             World::range(recv[r].data(), 4 * bytes)};
        world.engine_of(r).start(world.team(r), *plans[r], 0, buffers, &done[r]);
    }
    for (std::uint32_t i = 0; i < rounds; ++i)
        world.round();
    if (kill_proxy) {
        world.kill_proxy(3);
    } else {
        ASSERT_TRUE(world.run_until(
            [&] { return world.engine_of(3).close_session(world.session(3), Status::peer_lost); }));
    }
    ASSERT_TRUE(world.run_until([&] { return done[0].status && done[1].status && done[2].status; }))
        << "after " << rounds << " rounds";
    for (int r = 0; r < 3; ++r)
        EXPECT_TRUE(*done[r].status == Status::ok || *done[r].status == Status::peer_lost)
            << to_string(*done[r].status);
    if (rounds == 0) {
        EXPECT_EQ(*done[0].status, Status::peer_lost);
    }
    for (std::uint32_t r = 0; r < 3; ++r)
        EXPECT_EQ(world.engine_of(r).outstanding(*world.session(r)), 0u);
}

// A rank announced this message and then died, so the rest cannot be sent.
TEST_P(EngineBasic, AMessageOfARankThatIsGoneEndsItsReceive) {
    World world(options(2));
    const std::vector<std::byte> out(50000);
    std::vector<std::byte> in(50000);
    Done sent, received;
    world.engine_of(0).send(world.team(0), World::range(out.data(), out.size()), 1, 9, &sent);
    world.run_until([] { return false; });
    ASSERT_TRUE(world.run_until(
        [&] { return world.engine_of(0).close_session(world.session(0), Status::peer_lost); }));
    world.run_until([] { return false; });
    world.engine_of(1).recv(world.team(1), World::range(in.data(), in.size()), 0, 9, nullptr, &received);
    ASSERT_TRUE(world.run_until([&] { return received.status.has_value(); }));
    EXPECT_EQ(*received.status, Status::peer_lost);
}

TEST_P(EngineBasic, MaskedReceivesAndProbesEndWithARankThatTheyName) {
    World world(options(4));
    std::vector<std::byte> data(1000);
    Done of_two_or_three, of_even, probe, odd_probe;
    engine::MessageInfo info[4];
    const auto range = World::range(data.data(), data.size());
    engine::Engine& engine = world.engine_of(0);
    engine.recv(world.team(0), range, 2, 1, &info[0], &of_two_or_three, ~1u);
    engine.recv(world.team(0), range, 0, 2, &info[1], &of_even, 1);
    engine.probe(world.team(0), 2, ~1u, 3, true, &info[2], &probe);
    engine.probe(world.team(0), 0, 1, 3, true, &info[3], &odd_probe);
    for (int i = 0; i < 20; ++i)
        world.round();
    ASSERT_FALSE(of_two_or_three.status || of_even.status || probe.status || odd_probe.status);
    ASSERT_TRUE(world.run_until(
        [&] { return world.engine_of(3).close_session(world.session(3), Status::peer_lost); }));
    ASSERT_TRUE(world.run_until([&] { return of_two_or_three.status && probe.status; }));
    EXPECT_EQ(*of_two_or_three.status, Status::peer_lost);
    EXPECT_EQ(*probe.status, Status::peer_lost);
    // All even ranks are alive.
    EXPECT_FALSE(of_even.status || odd_probe.status);
    Done sent, again;
    world.engine_of(2).send(world.team(2), range, 0, 2, &sent);
    ASSERT_TRUE(world.run_until([&] { return of_even.status.has_value(); }));
    EXPECT_EQ(*of_even.status, Status::ok);
    EXPECT_EQ(info[1].source, 2U);
    engine.probe(world.team(0), 3, UINT32_MAX, 3, true, &info[2], &again);
    ASSERT_TRUE(world.run_until([&] { return again.status.has_value(); }));
    EXPECT_EQ(*again.status, Status::peer_lost);
    world.engine_of(0).close_session(world.session(0), Status::canceled);
    ASSERT_TRUE(world.run_until([&] { return odd_probe.status.has_value(); }));
    EXPECT_EQ(*odd_probe.status, Status::canceled);
}

// Memory that is not read through a pointer.
class EngineBasicByCopies : public EngineBasic {};

TEST_P(EngineBasicByCopies, AMessageThatCannotBeReadEndsItsReceiveAndNoOther) {
    World world(options(2));
    const std::vector<std::byte> out(50000);
    std::vector<std::byte> in(50000);
    Done small, large, empty;
    world.memory(0).forbid();
    world.engine_of(0).send(world.team(0), World::range(out.data(), 100), 1, 9, &small);
    world.engine_of(0).send(world.team(0), World::range(out.data(), out.size()), 1, 9, &large);
    world.engine_of(0).send(world.team(0), World::range(out.data(), 0), 1, 9, &empty);
    // A small message that is read at once is never announced.
    Status status = Status::access;
    for (int i = 0; i < 3 && status == Status::access; ++i) {
        Done received;
        world.engine_of(1).recv(world.team(1), World::range(in.data(), in.size()), 0, 9, nullptr, &received);
        ASSERT_TRUE(world.run_until([&] { return received.status.has_value(); }));
        status = *received.status;
    }
    EXPECT_EQ(status, Status::ok);
    EXPECT_EQ(small.status, Status::access);
    EXPECT_EQ(large.status, Status::access);
}

TEST(EngineAccidents, ProxyDiesAtAnyMoment) {
    for (std::uint32_t rounds = 0; rounds < 60; ++rounds)
        alltoall_with_accident(rounds, true);
}

TEST(EngineAccidents, RankLeavesAtAnyMoment) {
    for (std::uint32_t rounds = 0; rounds < 60; ++rounds)
        alltoall_with_accident(rounds, false);
}

TEST(EngineAccidents, DifferentSizesOnTwoRanksAreAnErrorOnBoth) {
    for (std::size_t bytes : {std::size_t{100}, std::size_t{50000}}) {
        World world({});
        engine::Plan p0(collectives::alltoall({0, 2}, bytes)), p1(collectives::alltoall({1, 2}, bytes + 1));
        std::vector<std::byte> buffer[4];
        for (auto& b : buffer)
            b.resize(2 * bytes + 2);
        Done done[2];
        const memory::HostRange b0[] = {World::range(buffer[0].data(), 2 * bytes),
                                        World::range(buffer[1].data(), 2 * bytes)};
        const memory::HostRange b1[] = {World::range(buffer[2].data(), 2 * bytes + 2),
                                        World::range(buffer[3].data(), 2 * bytes + 2)};
        world.engine_of(0).start(world.team(0), p0, 0, b0, &done[0]);
        world.engine_of(1).start(world.team(1), p1, 0, b1, &done[1]);
        ASSERT_TRUE(world.run_until([&] { return done[0].status && done[1].status; }));
        EXPECT_EQ(*done[0].status, Status::truncated);
        EXPECT_EQ(*done[1].status, Status::truncated);
    }
}

TEST(EngineAccidents, RubbishFromThePeerIsDropped) {
    WorldOptions options;
    World world(options);
    std::mt19937 random(11);
    for (int i = 0; i < 3000; ++i) {
        std::vector<std::byte> header(random() % 100), payload(random() % 200);
        for (auto& b : header)
            b = static_cast<std::byte>(random());
        if (header.size() >= 4 && i % 2)
            header[0] = static_cast<std::byte>(random() % 12),
            header[1] = header[2] = header[3] = std::byte{0};
        transport::Incoming incoming;
        incoming.header = header;
        incoming.bytes = payload.size();
        incoming.data = payload.data();
        world.engine_of(0).on_message(incoming);
    }
    Done sent, received;
    std::vector<std::byte> out(9000, std::byte{4}), in(9000);
    world.engine_of(1).send(world.team(1), World::range(out.data(), 9000), 0, 1, &sent);
    world.engine_of(0).recv(world.team(0), World::range(in.data(), 9000), 1, 1, nullptr, &received);
    ASSERT_TRUE(world.run_until([&] { return sent.status && received.status; }));
    EXPECT_EQ(in, out);
}

INSTANTIATE_TEST_SUITE_P(Memory, EngineBasicByCopies,
                         ::testing::Combine(::testing::Values(BackEnd::cma, BackEnd::staged),
                                            ::testing::Values(1u, 3u)));

}  // namespace
}  // namespace offpath::testing
