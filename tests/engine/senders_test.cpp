// Which messages an engine accepts from whom: from strangers, from proxies of other jobs, and from proxies of
// the same job that know a transfer's token but take no part in it.
#include "bare_proxy.h"
#include "world.h"

#include "engine/mover/slab.h"
#include "rma/access.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace offpath::testing {
namespace {

using engine::BasicRequest;
using engine::Chunk;
using engine::Eager;
using engine::Finished;
using engine::Grant;
using engine::Keyed;
using engine::Kind;
using engine::RankGone;

engine::JobSecret secret_of(int value) {
    engine::JobSecret secret;
    secret.fill(static_cast<std::byte>(value));
    return secret;
}

// The engine of proxy 1 has rank 0. Ranks 1 and 2 are at the proxies 2 and 3, which the test plays.
class Senders : public ::testing::Test {
  protected:
    static constexpr std::uint64_t team_id = 42;

    explicit Senders(const engine::Config& config = {}) : transport(hub.join()) {
        for (BareProxy* proxy : {&second, &third, &stranger})
            proxy->connect(transport->address());
        engine.emplace(*transport, 1, config);
        EXPECT_EQ(engine->open_session(job.id, job.secret, 0, memory, &session), Status::ok);
    }
    ~Senders() override {
        engine->close();
        transport.reset();
    }
    void announce() {
        for (const BareProxy* proxy : {&second, &third})
            EXPECT_EQ(engine->add_proxy(*session, proxy->id(), proxy->address()), Status::ok);
    }
    void make_team() {
        const engine::Member members[] = {{1, 0}, {2, 1}, {3, 2}};
        EXPECT_EQ(engine->create_team(*session, team_id, 0, members, &team), Status::ok);
    }
    void settle() {
        for (int i = 0; i < 50; ++i) {
            transport->progress();
            engine->advance();
            for (BareProxy* proxy : {&second, &third, &stranger})
                proxy->progress();
        }
    }
    engine::Route from(std::uint32_t rank) const { return {job.id.high, job.id.low, team_id, rank, 0}; }
    BasicRequest request(std::uint32_t rank, std::uint64_t bytes, std::uint64_t token,
                         std::uint32_t sequence = 0) const {
        return {{Kind::request, sequence, from(rank)}, 5, bytes, token};
    }
    std::uint64_t refused() const { return engine->counters().messages_refused; }
    // Rank 0 receives from rank 1. The proxy of rank 1 has been told to send to this token.
    std::uint64_t receive(std::span<std::byte> buffer, Done& done) {
        EXPECT_EQ(engine->recv(*team, World::range(buffer.data(), buffer.size()), 1, 5, nullptr, &done),
                  Status::in_progress);
        EXPECT_EQ(second.say(job, request(1, buffer.size(), 77)), Status::ok);
        settle();
        const auto grant = second.heard<Grant>(Kind::grant);
        EXPECT_TRUE(grant.has_value() && grant->sender == 77);
        return grant ? grant->receiver : 0;
    }

    const BareJob job{{7, 9}, secret_of(5)}, other{{70, 90}, secret_of(6)};
    transport::LoopbackHub hub{transport::LoopbackConfig{}};
    std::unique_ptr<transport::Transport> transport;
    BareProxy second{hub, 2}, third{hub, 3}, stranger{hub, 4};
    TestMemory memory{memory::BackEnd::cma};
    std::optional<engine::Engine> engine;
    engine::Session* session = nullptr;
    engine::Team* team = nullptr;
};

TEST_F(Senders, OnlyTheSenderOfATransferWritesIntoIt) {
    announce();
    make_team();
    std::vector<std::byte> buffer(64), right(64, std::byte{1}), wrong(64, std::byte{2});
    Done done;
    const Chunk chunk{Kind::chunk, 64, receive(buffer, done), 0};
    const Finished broken{Kind::broken, static_cast<std::int32_t>(Status::peer_lost), chunk.token};

    // First with the pass of another job of this engine, then with the right pass from another proxy.
    engine::Session* its_session = nullptr;
    TestMemory its_memory{memory::BackEnd::cma};
    ASSERT_EQ(engine->open_session(other.id, other.secret, 0, its_memory, &its_session), Status::ok);
    ASSERT_EQ(engine->add_proxy(*its_session, 2, second.address()), Status::ok);
    const std::uint64_t pass = engine::pass_of(job.secret, job.id, 2, 1);
    EXPECT_EQ(second.say(other, chunk, wrong), Status::ok);
    EXPECT_EQ(third.say(job, chunk, wrong), Status::ok);
    EXPECT_EQ(third.say(job, broken), Status::ok);
    EXPECT_EQ(third.say_with({3, pass}, chunk, wrong), Status::ok);
    EXPECT_EQ(stranger.say(job, chunk, wrong), Status::ok) << "nobody has announced it";
    EXPECT_EQ(stranger.say_with({2, pass ^ 1}, chunk, wrong), Status::ok);
    EXPECT_EQ(stranger.say_with({2, 0}, chunk, wrong), Status::ok);
    EXPECT_EQ(stranger.say_without_stamp(chunk, wrong), Status::ok);
    settle();
    EXPECT_EQ(buffer, std::vector<std::byte>(64));
    EXPECT_FALSE(done.status.has_value());
    EXPECT_EQ(refused(), 8u);

    EXPECT_EQ(second.say(job, chunk, right), Status::ok);
    settle();
    EXPECT_EQ(done.status, Status::ok);
    EXPECT_EQ(buffer, right);
    EXPECT_EQ(refused(), 8u);
}

TEST_F(Senders, AProxyOfAnotherVersionIsAStranger) {
    announce();
    make_team();
    std::vector<std::byte> buffer(64), right(64, std::byte{1}), wrong(64, std::byte{2});
    Done done;
    const Chunk chunk{Kind::chunk, 64, receive(buffer, done), 0};
    for (int difference : {-1, 1}) {
        const auto version = static_cast<std::uint16_t>(protocol_version + difference);
        EXPECT_EQ(second.say_with({2, engine::pass_of(job.secret, job.id, 2, 1, version)}, chunk, wrong),
                  Status::ok);
    }
    settle();
    EXPECT_EQ(refused(), 2u);
    EXPECT_FALSE(done.status.has_value());
    EXPECT_EQ(second.say(job, chunk, right), Status::ok);
    settle();
    EXPECT_EQ(done.status, Status::ok);
    EXPECT_EQ(buffer, right);
}

TEST_F(Senders, OnlyTheReceiverOfATransferAnswersIt) {
    announce();
    make_team();
    std::vector<std::byte> buffer(64);
    Done done;
    ASSERT_EQ(engine->keyed_send(*team, World::range(buffer.data(), 64), 1, {1, 2}, &done),
              Status::in_progress);
    settle();
    const auto message = second.heard<Keyed>(Kind::keyed);
    ASSERT_TRUE(message.has_value());
    EXPECT_EQ(third.say(job, Finished{Kind::finished, 0, message->token}), Status::ok);
    EXPECT_EQ(third.say(job, Grant{Kind::grant, 4096, message->token, 99, 64}), Status::ok);
    settle();
    EXPECT_FALSE(done.status.has_value());
    EXPECT_FALSE(second.heard<Chunk>(Kind::chunk).has_value());
    EXPECT_FALSE(third.heard<Chunk>(Kind::chunk).has_value());
    EXPECT_EQ(refused(), 2u);
    EXPECT_EQ(second.say(job, Grant{Kind::grant, 4096, message->token, 98, 64}), Status::ok);
    settle();
    ASSERT_TRUE(second.heard<Chunk>(Kind::chunk).has_value());
    EXPECT_EQ(second.heard<Chunk>(Kind::chunk)->token, 98u);
    EXPECT_EQ(third.say(job, Finished{Kind::finished, 0, message->token}), Status::ok);
    settle();
    EXPECT_FALSE(done.status.has_value());
    EXPECT_EQ(second.say(job, Finished{Kind::finished, 0, message->token}), Status::ok);
    settle();
    EXPECT_EQ(done.status, Status::ok);
}

TEST_F(Senders, AGrantThatIsRepeatedOrNamesNoReceiverBeginsNothing) {
    announce();
    make_team();
    struct Counted : Completion {
        int calls = 0;
        Counted() {
            function = [](Completion* self, Status) { ++static_cast<Counted*>(self)->calls; };
        }
    } done;
    std::vector<std::byte> buffer(9000);
    ASSERT_EQ(engine->send(*team, World::range(buffer.data(), buffer.size()), 1, 6, &done),
              Status::in_progress);
    settle();
    const auto message = second.heard<BasicRequest>(Kind::request);
    ASSERT_TRUE(message.has_value());
    const auto grant = [&](std::uint64_t receiver) {
        EXPECT_EQ(second.say(job, Grant{Kind::grant, 4096, message->token, receiver, 9000}), Status::ok);
    };
    // Both arrive before the engine moves anything.
    grant(0);
    grant(0);
    settle();
    EXPECT_EQ(done.calls, 0);
    EXPECT_FALSE(second.heard<Chunk>(Kind::chunk).has_value());
    EXPECT_EQ(refused(), 2u);
    grant(98);
    grant(99);
    settle();
    ASSERT_TRUE(second.heard<Chunk>(Kind::chunk).has_value());
    EXPECT_EQ(second.heard<Chunk>(Kind::chunk)->token, 98u);
    EXPECT_EQ(done.calls, 1);
    EXPECT_EQ(refused(), 2u);
}

TEST_F(Senders, NobodySpeaksForARankOfAnotherProxy) {
    announce();
    make_team();
    std::vector<std::byte> buffer(64);
    Done done;
    ASSERT_EQ(engine->recv(*team, World::range(buffer.data(), 64), 1, 5, nullptr, &done),
              Status::in_progress);
    EXPECT_EQ(third.say(job, request(1, 8, 0), std::vector<std::byte>(8, std::byte{3})), Status::ok);
    const RankGone gone{Kind::rank_gone, 1, job.id.high, job.id.low};
    EXPECT_EQ(third.say(job, gone), Status::ok);
    EXPECT_EQ(second.say(other, gone), Status::ok);
    settle();
    EXPECT_FALSE(done.status.has_value());
    EXPECT_EQ(buffer, std::vector<std::byte>(64));
    EXPECT_EQ(second.say(job, gone), Status::ok);
    settle();
    EXPECT_EQ(done.status, Status::peer_lost);
}

TEST_F(Senders, OnlyTheTargetAnswersAndOnlyTheOriginAsks) {
    announce();
    make_team();
    std::vector<std::byte> exposed(64), result(64), wrong(64, std::byte{2}), right(64, std::byte{1});
    engine::Window* window = nullptr;
    ASSERT_EQ(engine->create_window(*team, 3, World::range(exposed.data(), 64), false, &window), Status::ok);
    engine::OneSidedCall get;
    get.kind = rma::OpKind::get;
    get.target = 1;
    get.bytes = 64;
    get.result = World::range(result.data(), 64);
    Done done;
    ASSERT_EQ(engine->one_sided(*window, get, &done), Status::in_progress);
    settle();
    const auto asked = second.heard<engine::OneSidedHeader>(Kind::one_sided);
    ASSERT_TRUE(asked.has_value());
    const engine::OneSidedAnswer answer{Kind::one_sided_answer, 0, asked->part};
    EXPECT_EQ(third.say(job, answer, wrong), Status::ok);

    engine::OneSidedHeader put{};
    put.kind = Kind::one_sided;
    put.route = {job.id.high, job.id.low, team_id, 1, 0};
    put.window = 3;
    put.bytes = 64;
    put.operation = rma::OpKind::put;
    put.segments = 1;
    EXPECT_EQ(third.say(job, put, wrong), Status::ok) << "as rank 1, which it does not serve";
    settle();
    EXPECT_FALSE(done.status.has_value());
    EXPECT_EQ(exposed, std::vector<std::byte>(64));
    EXPECT_EQ(refused(), 2u);
    EXPECT_EQ(second.say(job, answer, right), Status::ok);
    EXPECT_EQ(second.say(job, put, right), Status::ok);
    settle();
    EXPECT_EQ(done.status, Status::ok);
    EXPECT_EQ(result, right);
    EXPECT_EQ(exposed, right);
}

// A rank may be faster than this one. Its proxy is believed because of its pass, and its message waits.
TEST_F(Senders, AProxyMaySpeakBeforeItIsAnnounced) {
    const std::vector<std::byte> word(8, std::byte{3});
    EXPECT_EQ(second.say(job, request(1, 8, 0), word), Status::ok);
    EXPECT_EQ(third.say_with({3, 1234}, request(2, 8, 0), word), Status::ok);
    settle();
    EXPECT_EQ(refused(), 1u);
    announce();
    make_team();
    std::vector<std::byte> buffer(8), more(8);
    Done first, never;
    ASSERT_EQ(engine->recv(*team, World::range(buffer.data(), 8), 1, 5, nullptr, &first),
              Status::in_progress);
    ASSERT_EQ(engine->recv(*team, World::range(more.data(), 8), 2, 5, nullptr, &never), Status::in_progress);
    settle();
    EXPECT_EQ(first.status, Status::ok);
    EXPECT_EQ(buffer, word);
    EXPECT_FALSE(never.status.has_value());
}

// What one job announces about a proxy does not affect other jobs. Here the announcement gives a stranger's
// address for the proxy.
TEST_F(Senders, AJobsAnnouncementsHoldForThatJobOnly) {
    engine::Session* its_session = nullptr;
    TestMemory its_memory{memory::BackEnd::cma};
    ASSERT_EQ(engine->open_session(other.id, other.secret, 0, its_memory, &its_session), Status::ok);
    ASSERT_EQ(engine->add_proxy(*its_session, 2, stranger.address()), Status::ok);
    EXPECT_EQ(engine->add_proxy(*its_session, 2, second.address()), Status::invalid);
    announce();
    make_team();
    std::vector<std::byte> buffer(64);
    Done done;
    ASSERT_EQ(engine->keyed_send(*team, World::range(buffer.data(), 64), 1, {1, 2}, &done),
              Status::in_progress);
    settle();
    EXPECT_TRUE(second.heard<Keyed>(Kind::keyed).has_value());
    EXPECT_FALSE(stranger.heard<Keyed>(Kind::keyed).has_value());
}

TEST_F(Senders, AJobHasOneSecret) {
    engine::Session* another = nullptr;
    EXPECT_EQ(engine->open_session(job.id, other.secret, 1, memory, &another), Status::access);
    EXPECT_EQ(engine->open_session(job.id, job.secret, 1, memory, &another), Status::ok);
}

// There is room for a hundred messages of eight bytes.
class Crowded : public Senders {
  protected:
    static constexpr std::uint64_t room = 100;
    Crowded() : Senders({.early_bytes = room * engine::Core::room(8)}) {}
    const std::vector<std::byte> word = std::vector<std::byte>(8, std::byte{3});
};

TEST_F(Crowded, TeamsThatNobodyMakesTakeTheirShareOnly) {
    announce();
    for (std::uint32_t i = 0; i < room + 50; ++i) {
        BasicRequest message = request(1, 8, 0);
        message.to.route.team = 1000 + i;
        EXPECT_EQ(second.say(job, message, word), Status::ok);
        settle();
    }
    EXPECT_EQ(refused(), 50u);
    // They end with their job, and the room that they took becomes free.
    while (!engine->close_session(session, Status::canceled))
        settle();
    ASSERT_EQ(engine->open_session(job.id, job.secret, 0, memory, &session), Status::ok);
    announce();
    EXPECT_EQ(second.say(job, request(1, 8, 0), word), Status::ok);
    settle();
    EXPECT_EQ(refused(), 50u);
}

// A rank that is too far ahead of the others is given up before it takes all memory. The other ranks stay.
TEST_F(Crowded, ARankTooFarAheadIsGone) {
    for (const Kind kind : {Kind::request, Kind::eager}) {
        if (team == nullptr) {
            announce();
            make_team();
        }
        const std::uint32_t rank = kind == Kind::request ? 1 : 2;
        BareProxy& proxy = kind == Kind::request ? second : third;
        std::vector<std::byte> buffer(8);
        Done done;
        ASSERT_EQ(engine->recv(*team, World::range(buffer.data(), 8), rank, 6, nullptr, &done),
                  Status::in_progress);
        for (std::uint32_t i = 0; i <= room; ++i) {
            EXPECT_FALSE(done.status.has_value()) << i;
            const Eager eager{{Kind::eager, i, from(rank)}, 5, 8};
            EXPECT_EQ(kind == Kind::request ? proxy.say(job, request(rank, 8, 0, i), word)
                                            : proxy.say(job, eager, word),
                      Status::ok);
            settle();
        }
        EXPECT_EQ(done.status, Status::peer_lost);
        // Messages that were received no longer count.
        for (std::uint32_t i = 0; kind == Kind::request && i < room; ++i) {
            Done taken;
            ASSERT_EQ(engine->recv(*team, World::range(buffer.data(), 8), 1, 5, nullptr, &taken),
                      Status::in_progress);
            settle();
            EXPECT_EQ(taken.status, Status::ok);
        }
    }
}

// A basic message out of order waits for those before it, and counts while it waits.
TEST_F(Crowded, MessagesOutOfOrderTakeTheirShareOnly) {
    announce();
    make_team();
    const auto say = [&](std::uint32_t sequence) {
        EXPECT_EQ(second.say(job, request(1, 8, 0, sequence), word), Status::ok);
        settle();
    };
    const auto receive_all = [&](std::uint32_t count) {
        std::vector<std::byte> buffer(8);
        for (std::uint32_t i = 0; i < count; ++i) {
            Done taken;
            ASSERT_EQ(engine->recv(*team, World::range(buffer.data(), 8), 1, 5, nullptr, &taken),
                      Status::in_progress);
            settle();
            EXPECT_EQ(taken.status, Status::ok) << i;
        }
    };
    // The messages come backwards, and the last of them twice. As many fit as there is room for, and their
    // room becomes free again.
    for (std::uint32_t i = room - 1; i > 0; --i)
        say(i);
    say(room - 1);
    say(0);
    receive_all(room);
    std::vector<std::byte> buffer(8);
    Done done;
    ASSERT_EQ(engine->recv(*team, World::range(buffer.data(), 8), 1, 6, nullptr, &done), Status::in_progress);
    for (std::uint32_t i = 0; i < room; ++i)
        say(room + 1 + i);
    EXPECT_FALSE(done.status.has_value());
    say(2 * room + 1);
    EXPECT_EQ(done.status, Status::peer_lost);
}

// The same for requests about windows. They are out of order, or held back until earlier ones are done.
class CrowdedWindow : public Crowded {
  protected:
    void make_window() {
        announce();
        make_team();
        ASSERT_EQ(
            engine->create_window(*team, 3, World::range(memory_.data(), memory_.size()), false, &window),
            Status::ok);
        ASSERT_EQ(engine->recv(*team, World::range(buffer_.data(), 8), 1, 6, nullptr, &lost),
                  Status::in_progress);
    }
    // `sender`: of the transfer that would bring the operand but never begins.
    void put(std::uint32_t sequence, std::uint64_t offset, bool ordered = false, std::uint64_t sender = 0) {
        engine::OneSidedHeader header{};
        header.kind = Kind::one_sided;
        header.sequence = sequence;
        header.route = from(1);
        header.window = 3;
        header.offset = offset;
        header.bytes = 8;
        header.part = 1 + sequence;
        header.operation = rma::OpKind::put;
        header.ordered = ordered ? 1 : 0;
        header.sender = sender;
        header.segments = 1;
        const std::span<const std::byte> operand(word);
        EXPECT_EQ(second.say(job, header, sender == 0 ? operand : operand.first(0)), Status::ok);
        settle();
    }
    engine::Window* window = nullptr;
    std::vector<std::byte> memory_ = std::vector<std::byte>(8 * room + 16);
    Done lost;  // when rank 1 counts as gone

  private:
    std::vector<std::byte> buffer_ = std::vector<std::byte>(8);
};

TEST_F(CrowdedWindow, RequestsOutOfOrderTakeTheirShareOnly) {
    make_window();
    for (std::uint32_t i = room - 1; i > 0; --i)
        put(i, 8 * i);
    put(room - 1, 0);  // a repetition: neither done nor kept
    EXPECT_EQ(memory_, std::vector<std::byte>(memory_.size()));
    put(0, 0);
    EXPECT_EQ(std::count(memory_.begin(), memory_.end(), std::byte{3}), 8 * room);
    // There is room again for as many, and for no more.
    for (std::uint32_t i = 0; i < room; ++i)
        put(room + 1 + i, 0);
    EXPECT_FALSE(lost.status.has_value());
    put(2 * room + 1, 0);
    EXPECT_EQ(lost.status, Status::peer_lost);
}

TEST_F(CrowdedWindow, RequestsThatAreHeldBackTakeTheirShareOnly) {
    make_window();
    put(0, 0, false, 77);
    for (std::uint32_t i = 0; i < room; ++i)
        put(1 + i, 8, i == 0);
    EXPECT_FALSE(lost.status.has_value());
    put(room + 1, 8);
    EXPECT_EQ(lost.status, Status::peer_lost);
    EXPECT_EQ(memory_, std::vector<std::byte>(memory_.size()));
}

TEST_F(CrowdedWindow, WhatWaitedGoesWithItsWindow) {
    make_window();
    for (std::uint32_t i = room; i > 0; --i)
        put(i, 0);
    Done ended;
    ASSERT_EQ(engine->destroy_window(*window, &ended), Status::in_progress);
    settle();
    EXPECT_EQ(ended.status, Status::ok);
    ASSERT_EQ(engine->create_window(*team, 3, World::range(memory_.data(), memory_.size()), false, &window),
              Status::ok);
    for (std::uint32_t i = room; i > 0; --i)
        put(i, 0);
    EXPECT_FALSE(lost.status.has_value());
}

TEST(Passes, AreOfOneJobOneDirectionAndOneVersion) {
    const engine::JobSecret secret = secret_of(5);
    std::set<std::uint64_t> passes{
        engine::pass_of(secret, {1, 2}, 3, 4),       engine::pass_of(secret, {1, 2}, 4, 3),
        engine::pass_of(secret, {1, 3}, 3, 4),       engine::pass_of(secret, {2, 2}, 3, 4),
        engine::pass_of(secret_of(6), {1, 2}, 3, 4), engine::pass_of(secret, {1, 2}, 3, 4, 16)};
    EXPECT_EQ(passes.size(), 6u);
    // The expected value was computed with another implementation of HMAC-SHA256.
    EXPECT_EQ(engine::pass_of(secret, {1, 2}, 3, 4, 16), 0x45e431e02457889eu);
}

struct Thing {
    std::uint64_t token = 0;
    void reset() { *this = Thing{}; }
};

TEST(Slab, TokensTellNothingOfTheNextOnes) {
    RandomNumbers random;
    engine::Slab<Thing> first(random), second(random);
    std::set<std::uint64_t> drawn;
    std::uint64_t last = 0;
    for (int i = 0; i < 1000; ++i) {
        Thing* const thing = first.take();
        EXPECT_EQ(first.find(last), nullptr);
        EXPECT_EQ(first.find(thing->token), thing);
        EXPECT_EQ(first.find(thing->token ^ (std::uint64_t{1} << 24)), nullptr);
        last = thing->token;
        drawn.insert(last >> 24);
        first.give_back(thing);
        Thing* const other = second.take();
        drawn.insert(other->token >> 24);
        second.give_back(other);
    }
    // Tokens are drawn from 2^40 values, so two equal ones are rare.
    EXPECT_GE(drawn.size(), 1999u);
}

TEST(Slab, GivesItsMemoryBackWhenNothingIsInUse) {
    RandomNumbers random;
    engine::Slab<Thing> slab(random);
    Thing* const last = slab.take();
    for (int i = 0; i < 100; ++i)
        (void)slab.take();
    const std::uint64_t token = last->token;
    slab.release_if_unused();
    EXPECT_EQ(slab.size(), 101u);
    slab.for_each([&](Thing& thing) { slab.give_back(&thing); });
    slab.release_if_unused();
    EXPECT_EQ(slab.size(), 0u);
    EXPECT_EQ(slab.find(token), nullptr);
    EXPECT_NE(slab.take(), nullptr);
}

}  // namespace
}  // namespace offpath::testing
