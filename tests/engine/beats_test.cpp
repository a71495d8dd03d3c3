// Proxies that fall silent without a broken connection.
#include "../transport/forwarding.h"
#include "bare_proxy.h"
#include "windows.h"
#include "world.h"

#include <gtest/gtest.h>

#include <set>

namespace offpath::testing {
namespace {

constexpr std::uint64_t ms = 1'000'000, limit = 1000 * ms, interval = 125 * ms;

class Beats : public ::testing::Test {
  protected:
    // Rank 1 sends one message to rank 0, so that both have a connection to each other. The next message
    // never comes.
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
    // Time passes for the proxies that are not stopped, until `over` holds or `most` has passed.
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

// Its message shows that it knows the other one.
TEST_F(Beats, AProxyThatStopsBeforeItsFirstAnswerIsLost) {
    world.stop(1);
    const std::uint64_t took = pass(10 * limit, [&] { return waiting.status.has_value(); });
    ASSERT_TRUE(waiting.status);
    EXPECT_EQ(*waiting.status, Status::peer_lost);
    EXPECT_GE(took, limit);
    EXPECT_LE(took, limit + 2 * interval);
}

// It is asked in each round until its first answer, so it does not matter that it missed questions.
TEST_F(Beats, APauseBeforeItsFirstAnswerIsSurvived) {
    world.stop(1);
    pass(limit - 2 * interval);
    world.go_on(1);
    pass(5 * limit);
    EXPECT_FALSE(waiting.status);
}

TEST_F(Beats, APauseWithinTheLimitIsSurvived) {
    pass(limit);
    world.stop(1);
    pass(limit - 2 * interval);
    world.go_on(1);
    pass(5 * limit);
    EXPECT_FALSE(waiting.status);
}

// The asking proxy was stopped itself, so the answer may have come meanwhile.
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

// Its message is for a receive that has already failed. The next receive must not get it.
TEST_F(Beats, AMessageOfAProxyThatWasGivenUpIsDropped) {
    Done theirs, sent, next;
    ASSERT_EQ(receive(1, 0, theirs), Status::in_progress);
    pass(limit);
    world.stop(0);
    ASSERT_GT(pass(10 * limit, [&] { return theirs.status.has_value(); }), 0u);
    EXPECT_EQ(theirs.status, Status::peer_lost);
    world.go_on(0);
    world.engine_of(0).send(world.team(0), World::range(out.data(), 100), 1, 1, &sent);
    for (int i = 0; i < 20; ++i)
        world.round();
    ASSERT_EQ(receive(1, 0, next), Status::in_progress);
    for (int i = 0; i < 20; ++i)
        world.round();
    EXPECT_EQ(next.status, Status::peer_lost);
}

// Ranks of which only some wait for others.
class OneSidedBeats : public ::testing::Test {
  protected:
    explicit OneSidedBeats() {
        WorldOptions options;
        options.ranks = options.proxies = 3;
        world.emplace(options);
        windows.emplace(*world, 64);
    }
    void start(std::uint32_t rank, rma::OpKind kind, std::uint32_t target, Done& done) {
        engine::OneSidedCall call;
        call.kind = kind;
        call.target = target;
        call.watched = true;
        if (kind == rma::OpKind::get) {
            call.bytes = value.size();
            call.result = World::range(value.data(), value.size());
        }
        windows->start(rank, call, &done);
    }
    // Time passes until the call is over, or `most` has passed.
    void pass(const Done& done, std::uint64_t most = 10 * limit) {
        for (const std::uint64_t end = now + most; now < end && !done.status;) {
            now += interval;
            for (std::uint32_t rank = 0; rank < 3; ++rank)
                if (!world->stopped(rank)) world->engine_of(rank).beat(now, limit);
            for (int round = 0; round < 50; ++round)
                world->round();
        }
    }
    // Rank 2's proxy gives up rank 0's, which does not hear of it.
    void give_up() {
        std::vector<std::byte> empty(8);
        Done waits;
        ASSERT_EQ(world->engine_of(2).recv(world->team(2), World::range(empty.data(), empty.size()), 0, 1,
                                           &info, &waits),
                  Status::in_progress);
        pass(waits, limit);
        world->stop(0);
        world->stop(1);  // or it would give up rank 0's proxy, too
        pass(waits);
        ASSERT_EQ(waits.status, Status::peer_lost);
    }

    std::vector<std::byte> value = std::vector<std::byte>(8);
    engine::MessageInfo info;
    std::optional<World> world;
    std::optional<Windows> windows;
    std::uint64_t now = 77 * ms;
};

// Rank 2 has the lock, and can no longer unlock.
TEST_F(OneSidedBeats, ALockWhoseHolderHasGivenUpTheOwnerIsNotWaitedFor) {
    Done held, waits;
    start(2, rma::OpKind::lock_exclusive, 0, held);
    ASSERT_TRUE(world->run_until([&] { return held.status.has_value(); }));
    start(1, rma::OpKind::lock_exclusive, 0, waits);
    world->run_until([] { return false; });
    give_up();
    world->go_on(0);
    world->go_on(1);
    EXPECT_FALSE(waits.status);
    EXPECT_TRUE(world->engine_of(0).awaits_others());
    pass(waits);
    EXPECT_TRUE(waits.status) << "nobody tells rank 0's proxy";
}

// Rank 2 ends before rank 0's proxy runs again.
TEST_F(OneSidedBeats, AProxyThatWasGivenUpIsToldAlsoAfterTheJob) {
    give_up();
    ASSERT_TRUE(world->run_until(
        [&] { return world->engine_of(2).close_session(world->session(2), Status::peer_lost); }));
    world->go_on(0);
    world->go_on(1);
    Done waits;
    start(0, rma::OpKind::get, 2, waits);
    pass(waits);
    EXPECT_EQ(waits.status, Status::peer_lost);
}

// The engine of proxy 1 has rank 0 of two jobs. Rank 1 of both is at proxy 2, which the test plays. Both jobs
// share the connection to it.
class JobsBeats : public ::testing::Test {
  protected:
    struct Part {
        BareJob job;
        TestMemory memory{memory::BackEnd::cma};
        engine::Session* session = nullptr;
        engine::Team* team = nullptr;
        Done waiting;
    };

    JobsBeats() : transport(hub.join()), other(hub, 2) {
        other.connect(transport->address());
        engine.emplace(*transport, 1, engine::Config{});
        a.job = {{7, 9}, secret_of(5)};
        b.job = {{70, 90}, secret_of(6)};
        for (Part* part : {&a, &b})
            EXPECT_EQ(engine->open_session(part->job.id, part->job.secret, 0, part->memory, &part->session),
                      Status::ok);
    }
    ~JobsBeats() override {
        engine->close();
        transport.reset();
    }
    static engine::JobSecret secret_of(int value) {
        engine::JobSecret secret;
        secret.fill(static_cast<std::byte>(value));
        return secret;
    }
    void announce(Part& part) {
        EXPECT_EQ(engine->add_proxy(*part.session, 2, other.address()), Status::ok);
        const engine::Member members[] = {{1, 0}, {2, 1}};
        EXPECT_EQ(engine->create_team(*part.session, 42, 0, members, &part.team), Status::ok);
        engine->greet(*part.session);
    }
    Status receive(Part& part) {
        return engine->recv(*part.team, World::range(in.data(), in.size()), 1, 1, nullptr, &part.waiting);
    }
    void say(const Part& part, engine::BeatWord word) {
        EXPECT_EQ(
            other.say(part.job, engine::Beat{engine::Kind::beat, word, part.job.id.high, part.job.id.low}),
            Status::ok);
    }
    void settle() {
        for (int i = 0; i < 20; ++i) {
            transport->progress();
            engine->advance();
            other.progress();
        }
    }
    // The other proxy answers for these jobs, whether it was asked or not.
    void pass(std::uint64_t time, const std::vector<const Part*>& answered) {
        for (std::uint64_t passed = 0; passed < time; passed += interval) {
            for (const Part* part : answered)
                say(*part, engine::BeatWord::answer);
            settle();
            engine->beat(now += interval, limit);
            settle();
        }
    }

    transport::LoopbackHub hub{transport::LoopbackConfig{}};
    std::unique_ptr<transport::Transport> transport;
    BareProxy other;
    Part a, b;
    std::optional<engine::Engine> engine;
    std::vector<char> in = std::vector<char>(9000);
    std::uint64_t now = 77 * ms;
};

// A process with the secret of one job can make a proxy look silent in that job. Other jobs keep their
// connection.
TEST_F(JobsBeats, OneJobsSilenceIsNotTheOthers) {
    for (Part* part : {&a, &b}) {
        announce(*part);
        ASSERT_EQ(receive(*part), Status::in_progress);
    }
    pass(2 * limit, {&a, &b});
    pass(2 * limit, {&b});
    EXPECT_EQ(a.waiting.status, Status::peer_lost);
    pass(10 * limit, {&b});
    EXPECT_FALSE(b.waiting.status);
    Done sent;
    ASSERT_EQ(engine->keyed_send(*b.team, World::range(in.data(), in.size()), 1, {1, 2}, &sent),
              Status::in_progress);
    settle();
    EXPECT_TRUE(other.heard<engine::Keyed>(engine::Kind::keyed).has_value());
}

// The second job has not asked anything until then. Its operation must not wait for what the first job has
// outstanding.
TEST_F(JobsBeats, AConnectionThatBringsNoAnswerEndsForAllJobs) {
    announce(a);
    announce(b);
    ASSERT_EQ(receive(a), Status::in_progress);
    pass(2 * limit, {&a});
    EXPECT_FALSE(a.waiting.status);
    pass(2 * limit, {});
    EXPECT_EQ(a.waiting.status, Status::peer_lost);
    (void)receive(b);
    settle();
    EXPECT_EQ(b.waiting.status, Status::peer_lost);
}

TEST_F(JobsBeats, AFarewellIsOfOneJob) {
    for (Part* part : {&a, &b}) {
        announce(*part);
        ASSERT_EQ(receive(*part), Status::in_progress);
    }
    pass(2 * limit, {&a, &b});
    say(a, engine::BeatWord::farewell);
    pass(5 * limit, {&b});
    EXPECT_EQ(a.waiting.status, Status::peer_lost);
    EXPECT_FALSE(b.waiting.status);
}

// This proxy works, so it answers, although the job has ended here and the other side still waits.
TEST_F(JobsBeats, QuestionsOfAJobThatHasEndedAreAnswered) {
    announce(a);
    settle();
    while (!engine->close_session(a.session, Status::canceled))
        settle();
    say(a, engine::BeatWord::question);
    settle();
    const auto heard = other.heard<engine::Beat>(engine::Kind::beat);
    ASSERT_TRUE(heard.has_value());
    EXPECT_EQ(heard->word, engine::BeatWord::answer);
}

// A rank may leave long before the others, and other jobs come and go meanwhile.
TEST_F(JobsBeats, QuestionsOfAnEndedJobAreAnsweredAfterOtherJobs) {
    for (Part* part : {&a, &b}) {
        announce(*part);
        settle();
        while (!engine->close_session(part->session, Status::canceled))
            settle();
    }
    say(a, engine::BeatWord::question);
    settle();
    EXPECT_TRUE(other.heard<engine::Beat>(engine::Kind::beat).has_value());
}

// The question cannot be answered yet, so the other proxy asks again.
TEST_F(JobsBeats, AQuestionMayComeBeforeItsProxyIsAnnounced) {
    say(a, engine::BeatWord::question);
    settle();
    EXPECT_FALSE(other.heard<engine::Beat>(engine::Kind::beat).has_value());
    EXPECT_EQ(engine->counters().messages_refused, 0u);
    announce(a);
    say(a, engine::BeatWord::question);
    settle();
    EXPECT_TRUE(other.heard<engine::Beat>(engine::Kind::beat).has_value());
}

// It may not know who asks, so it is asked again in each round.
TEST_F(JobsBeats, AProxyThatHasSentNothingIsNotGivenUp) {
    announce(a);
    ASSERT_EQ(receive(a), Status::in_progress);
    pass(limit, {});
    const auto before = engine->counters().messages_sent;
    pass(3 * limit, {});
    EXPECT_FALSE(a.waiting.status);
    EXPECT_EQ(engine->counters().messages_sent, before + 3 * limit / interval);
}

// Its question shows that it knows this proxy.
TEST_F(JobsBeats, AProxyThatAsksAndNeverAnswersIsLost) {
    announce(a);
    say(a, engine::BeatWord::question);
    settle();
    ASSERT_EQ(receive(a), Status::in_progress);
    pass(limit - interval, {});
    EXPECT_FALSE(a.waiting.status);
    pass(3 * interval, {});
    EXPECT_EQ(a.waiting.status, Status::peer_lost);
}

// The connection to the other proxies can be cut. Then all connections are lost, and no new one can be made.
class Cuttable final : public transport::Forwarding<> {
  public:
    using Forwarding::Forwarding;
    void cut() { cut_ = true; }
    void mend() { cut_ = false; }
    std::size_t connected() const { return endpoints_.size(); }

    void set_handler(transport::Handler* handler) override { inner_->set_handler(handler_ = handler); }
    Status connect(std::span<const std::byte> address, transport::Endpoint** endpoint) override {
        if (cut_) return Status::unavailable;
        const Status status = inner_->connect(address, endpoint);
        if (status == Status::ok) endpoints_.insert(*endpoint);
        return status;
    }
    void disconnect(transport::Endpoint* endpoint) override {
        endpoints_.erase(endpoint);
        told_.erase(endpoint);
        inner_->disconnect(endpoint);
    }
    Status post(transport::Endpoint& endpoint, std::span<const std::byte> header,
                std::span<const std::byte> payload) override {
        return told_.contains(&endpoint) ? Status::peer_lost : inner_->post(endpoint, header, payload);
    }
    unsigned progress() override {
        unsigned events = inner_->progress();
        const auto all = endpoints_;
        for (transport::Endpoint* endpoint : all) {
            if (!cut_ || !told_.insert(endpoint).second) continue;
            handler_->on_endpoint_lost(*endpoint);
            ++events;
        }
        return events;
    }

  private:
    transport::Handler* handler_ = nullptr;
    std::set<transport::Endpoint*> endpoints_, told_;
    bool cut_ = false;
};

// The job has too many proxies for greetings. Rank 0 waits for a message of rank 1, with whose proxy nothing
// has been exchanged.
class LargeJob : public ::testing::Test {
  protected:
    static constexpr engine::ProxyId proxies = 80;

    LargeJob() : transport(hub.join()) {
        other.emplace(hub, 2);
        other->connect(transport.address());
        engine.emplace(transport, 1, engine::Config{});
        EXPECT_EQ(engine->open_session(job.id, job.secret, 0, memory, &session), Status::ok);
        EXPECT_EQ(engine->add_proxy(*session, 2, other->address()), Status::ok);
        for (engine::ProxyId id = 3; id <= proxies; ++id) {
            idle.push_back(hub.join());
            EXPECT_EQ(engine->add_proxy(*session, id, idle.back()->address()), Status::ok);
        }
        const engine::Member members[] = {{1, 0}, {2, 1}};
        EXPECT_EQ(engine->create_team(*session, 42, 0, members, &team), Status::ok);
        engine->greet(*session);
        settle();
        EXPECT_EQ(transport.connected(), 0u);
        EXPECT_EQ(engine->keyed_recv(*team, World::range(in.data(), in.size()), 1, {1, 2}, nullptr, &waiting),
                  Status::in_progress);
    }
    ~LargeJob() override { engine->close(); }
    void settle() {
        for (int i = 0; i < 20; ++i) {
            transport.progress();
            engine->advance();
            if (other) other->progress();
        }
    }
    void pass(std::uint64_t time) {
        for (std::uint64_t passed = 0; passed < time; passed += interval) {
            engine->beat(now += interval, limit);
            settle();
        }
    }
    bool is_asked() {
        const auto heard = other->heard<engine::Beat>(engine::Kind::beat);
        return heard.has_value() && heard->word == engine::BeatWord::question;
    }

    const BareJob job{{7, 9}, {}};
    transport::LoopbackHub hub{transport::LoopbackConfig{}};
    Cuttable transport;
    std::optional<BareProxy> other;
    std::vector<std::unique_ptr<transport::Transport>> idle;
    TestMemory memory{memory::BackEnd::cma};
    std::optional<engine::Engine> engine;
    engine::Session* session = nullptr;
    engine::Team* team = nullptr;
    std::vector<char> in = std::vector<char>(64);
    Done waiting;
    std::uint64_t now = 77 * ms;
};

TEST_F(LargeJob, OneThatNobodyHasConnectedToIsLostToo) {
    other.reset();
    pass(limit - interval);
    EXPECT_FALSE(waiting.status);
    pass(3 * interval);
    EXPECT_EQ(waiting.status, Status::peer_lost);
}

TEST_F(LargeJob, OneThatEndsBeforeItHasAnsweredIsLost) {
    pass(2 * interval);
    EXPECT_TRUE(is_asked());
    other.reset();
    pass(limit + 3 * interval);
    EXPECT_EQ(waiting.status, Status::peer_lost);
}

TEST_F(LargeJob, OneThatHasAnsweredIsLostAtOnce) {
    pass(2 * interval);
    EXPECT_EQ(other->say(job, engine::Beat{engine::Kind::beat, engine::BeatWord::answer, 7, 9}), Status::ok);
    settle();
    other.reset();
    settle();
    EXPECT_EQ(waiting.status, Status::peer_lost);
}

TEST_F(LargeJob, OnlyThoseThatAreWaitedForAreConnectedTo) {
    pass(3 * limit);
    EXPECT_EQ(transport.connected(), 1u);
    EXPECT_FALSE(waiting.status);
}

TEST_F(LargeJob, ALinkThatIsBackWithinTheLimitLosesNobody) {
    transport.cut();
    pass(limit - interval);
    transport.mend();
    pass(2 * interval);
    EXPECT_TRUE(is_asked());
    EXPECT_FALSE(waiting.status);
}

TEST_F(LargeJob, NorDoesOneThatBreaksTheFirstConnection) {
    pass(2 * interval);
    transport.cut();
    pass(limit - 2 * interval);
    transport.mend();
    pass(2 * interval);
    EXPECT_EQ(other->say(job, engine::Beat{engine::Kind::beat, engine::BeatWord::answer, 7, 9}), Status::ok);
    pass(limit - interval);
    EXPECT_FALSE(waiting.status);
}

TEST_F(LargeJob, ALinkThatStaysDownIsTold) {
    transport.cut();
    pass(limit - interval);
    EXPECT_FALSE(waiting.status);
    pass(3 * interval);
    EXPECT_EQ(waiting.status, Status::peer_lost);
}

// A message that is sent meanwhile connects anew.
TEST_F(LargeJob, AMessageGoesWhereAProbeHasFailed) {
    pass(interval);
    transport.cut();
    settle();
    transport.mend();
    Done sent;
    ASSERT_EQ(engine->keyed_send(*team, World::range(in.data(), in.size()), 1, {3, 4}, &sent),
              Status::in_progress);
    settle();
    EXPECT_TRUE(other->heard<engine::Keyed>(engine::Kind::keyed).has_value());
    pass(interval);
    EXPECT_EQ(transport.connected(), 1u);
}

}  // namespace
}  // namespace offpath::testing
