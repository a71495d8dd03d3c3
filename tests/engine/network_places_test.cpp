// Memory that only the network card reaches: the mover passes its place to the transport, and no byte comes
// to the proxy. The counters say how often a payload was copied on its way.
#include "../transport/forwarding.h"
#include "world.h"

#include <gtest/gtest.h>

#include <numeric>
#include <tuple>

namespace offpath::testing {
namespace {

using memory::BackEnd;

// The loopback as a network card that moves the ranks' memory by itself.
class NetworkLoopback final : public transport::Forwarding<> {
  public:
    using Forwarding::Forwarding;
    unsigned sent = 0;
    Status fails = Status::ok;  // what it answers from now on instead of moving anything

    std::size_t least_from_network(const transport::Endpoint&) const override { return least_network_bytes; }
    bool fetches_into_network() const override { return true; }
    Status send_from(transport::Endpoint& endpoint, std::span<const std::byte> header,
                     const NetworkPlace& payload, std::size_t bytes, Completion* completion) override {
        EXPECT_GE(bytes, least_network_bytes);
        ++sent;
        if (fails != Status::ok) return fails;
        return inner_->send(endpoint, header, reinterpret_cast<const void*>(payload.address), bytes,
                            completion);
    }
    Status fetch_into(void* rendezvous, const NetworkPlace& destination, std::size_t bytes,
                      Completion* completion) override {
        if (fails != Status::ok) {
            inner_->discard(rendezvous);
            return fails;
        }
        return inner_->fetch(rendezvous, reinterpret_cast<void*>(destination.address), bytes, completion);
    }
};

struct BackEnds {
    BackEnd from, to;
};

class NetworkPlaces : public ::testing::Test {
  protected:
    void make(BackEnds kinds, std::uint32_t proxies = 2, bool card = true) {
        WorldOptions options;
        options.proxies = proxies;
        options.memory = kinds.from;
        options.memory_of_last = kinds.to;
        options.engine = engine::Config{.send_bounces = 2, .recv_bounces = 2};
        options.loopback.eager_bytes = 8 << 10;
        if (card)
            options.wrap = [&](std::unique_ptr<transport::Transport> inner, std::uint32_t) {
                auto made = std::make_unique<NetworkLoopback>(std::move(inner));
                cards.push_back(made.get());
                return std::unique_ptr<transport::Transport>(std::move(made));
            };
        world.emplace(options);
    }
    void start(std::size_t bytes) {
        from.resize(bytes);
        std::iota(reinterpret_cast<unsigned char*>(from.data()),
                  reinterpret_cast<unsigned char*>(from.data()) + bytes, static_cast<unsigned char>(bytes));
        to.assign(bytes, std::byte{0});
        ASSERT_EQ(world->engine_of(0).keyed_send(world->team(0), World::range(from.data(), bytes), 1, {1, 1},
                                                 &sent),
                  Status::in_progress);
        ASSERT_EQ(world->engine_of(1).keyed_recv(world->team(1), World::range(to.data(), bytes), 0, {1, 1},
                                                 nullptr, &received),
                  Status::in_progress);
        ASSERT_TRUE(world->run_until([&] { return sent.status && received.status; }));
    }
    void move(std::size_t bytes) {
        start(bytes);
        EXPECT_EQ(sent.status, Status::ok);
        EXPECT_EQ(received.status, Status::ok);
        EXPECT_TRUE(from == to);
    }
    std::tuple<std::uint64_t, std::uint64_t, std::uint64_t> copied() {
        const engine::Counters& counters = world->engine_of(1).counters();
        const engine::Copies& received = counters.copies;
        const engine::Copies& of_rank = world->session(1)->copies;
        EXPECT_EQ(received.direct + received.once + received.more,
                  of_rank.direct + of_rank.once + of_rank.more);
        return {received.direct, received.once, received.more};
    }
    std::uint64_t staged() { return world->memory(0).staged_bytes + world->memory(1).staged_bytes; }

    std::vector<NetworkLoopback*> cards;
    std::vector<std::byte> from, to;
    Done sent, received;
    std::optional<World> world;
};

constexpr std::size_t plenty = (3 << 20) + 5;  // whose last piece would be too small
using Copied = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

TEST_F(NetworkPlaces, NoByteComesToTheProxies) {
    make({BackEnd::xgvmi, BackEnd::xgvmi});
    move(plenty);
    EXPECT_EQ(staged(), 0u);
    EXPECT_EQ(copied(), Copied(plenty, 0, 0));
}

TEST_F(NetworkPlaces, AMixtureIsCopiedOnce) {
    for (const BackEnds& kinds :
         {BackEnds{BackEnd::xgvmi, BackEnd::cma}, BackEnds{BackEnd::cma, BackEnd::xgvmi},
          BackEnds{BackEnd::staged, BackEnd::map}}) {
        make(kinds);
        sent = received = Done();
        move(plenty);
        EXPECT_EQ(staged(), plenty);
        EXPECT_EQ(copied(), Copied(0, plenty, 0)) << static_cast<int>(kinds.from);
        world.reset();
    }
}

TEST_F(NetworkPlaces, MemoryWithAPointerNeedsNoCopyAndOtherMemoryTwo) {
    make({BackEnd::map, BackEnd::xgvmi});
    move(plenty);
    EXPECT_EQ(copied(), Copied(plenty, 0, 0));
    make({BackEnd::cma, BackEnd::cma});
    sent = received = Done();
    move(plenty);
    EXPECT_EQ(copied(), Copied(0, 0, plenty));
}

TEST_F(NetworkPlaces, AMebibyteTakesTwoMessages) {
    make({BackEnd::xgvmi, BackEnd::xgvmi});
    move(1 << 20);
    EXPECT_EQ(cards[0]->sent, 2u);
}

TEST_F(NetworkPlaces, WithinAProxyTheCardCopiesAllButASmallRest) {
    make({BackEnd::xgvmi, BackEnd::xgvmi}, 1);
    move(plenty);
    EXPECT_EQ(staged(), 2u * 5) << "read and written";
    sent = received = Done();
    move(100);
    EXPECT_EQ(staged(), 2u * 105);
    EXPECT_EQ(world->memory(0).small_copies, 0u);
}

TEST_F(NetworkPlaces, WhatIsSmallIsStaged) {
    make({BackEnd::xgvmi, BackEnd::xgvmi});
    move(least_network_bytes - 1);
    EXPECT_EQ(world->memory(0).staged_bytes, least_network_bytes - 1);
    EXPECT_EQ(world->memory(1).staged_bytes, least_network_bytes - 1) << "it came with its header";
    EXPECT_EQ(copied(), Copied(0, 0, least_network_bytes - 1));
}

TEST_F(NetworkPlaces, AFabricThatCannotStages) {
    make({BackEnd::xgvmi, BackEnd::xgvmi}, 2, false);
    move(plenty);
    EXPECT_EQ(staged(), 2 * plenty);
    EXPECT_EQ(copied(), Copied(0, 0, plenty));
}

TEST_F(NetworkPlaces, ARefusalEndsTheTransferAtBothEnds) {
    for (const std::size_t end : {0, 1}) {
        cards.clear();
        make({BackEnd::xgvmi, BackEnd::xgvmi});
        sent = received = Done();
        cards[end]->fails = Status::access;
        start(plenty);
        EXPECT_TRUE(is_error(*received.status));
        EXPECT_EQ(end == 0 ? *sent.status : *received.status, Status::access);
        EXPECT_EQ(staged(), 0u);
        world.reset();
    }
}

// Ordinary memory with shared pages: those are sent from where they are.
class PagesThatAreShared : public NetworkPlaces {
  protected:
    void make(std::uint32_t proxies, std::function<bool(std::uint64_t)> of_sender) {
        NetworkPlaces::make({BackEnd::cma, BackEnd::cma}, proxies, false);
        sent = received = Done();
        world->memory(0).shares = std::move(of_sender);
    }
};

TEST_F(PagesThatAreShared, OnlyTheEdgesAreRead) {
    make(2, [](std::uint64_t) { return true; });
    move(plenty);
    EXPECT_EQ(world->memory(0).staged_bytes, 0u);
    EXPECT_EQ(world->memory(1).staged_bytes, plenty);
    EXPECT_EQ(copied(), Copied(0, plenty, 0));
    make(2, nullptr);
    const auto is_inside = [this](std::uint64_t page) {
        const auto begin = reinterpret_cast<std::uint64_t>(from.data());
        return page << 12 >= begin && (page + 1) << 12 <= begin + from.size();
    };
    world->memory(0).shares = is_inside;
    move(plenty);
    EXPECT_LT(world->memory(0).staged_bytes, 2u * 4096);
}

TEST_F(PagesThatAreShared, AnyPatternOfPages) {
    for (const std::uint32_t proxies : {2u, 1u})
        for (const unsigned seed : {1u, 2u, 3u, 4u}) {
            make(proxies, [=](std::uint64_t page) { return ((page / seed * 2654435761u) >> 9 & 1) != 0; });
            move(plenty);
            make(proxies, [=](std::uint64_t page) { return page % (3 * seed) != 0; });
            move(70'000 * seed + 1);
        }
}

TEST_F(PagesThatAreShared, AMessageThatTravelsWithItsHeader) {
    for (const std::size_t bytes : {1u, 4095u, 5000u, 8191u}) {
        make(2, [](std::uint64_t page) { return page % 2 == 0; });
        move(bytes);
    }
}

}  // namespace
}  // namespace offpath::testing
