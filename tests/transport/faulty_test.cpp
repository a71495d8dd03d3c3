// Faults by seed: only faults that the interface allows are injected, the same seed causes the same faults,
// and every operation still ends exactly once.
#include "harness.h"

#include "transport/faulty/faulty.h"
#include "transport/loopback/loopback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

namespace offpath::transport::test {
namespace {

struct Pair {
    explicit Pair(const FaultPlan& plan) {
        LoopbackConfig config;
        config.eager_bytes = 1000;
        hub = std::make_unique<LoopbackHub>(config);
        a = make_faulty(hub->join(), plan);
        b = make_faulty(hub->join(), plan);
        a->set_handler(&at_a);
        b->set_handler(&at_b);
        EXPECT_EQ(a->connect(b->address(), &to_b), Status::ok);
        EXPECT_EQ(b->connect(a->address(), &to_a), Status::ok);
    }
    Recorder at_a, at_b;
    std::unique_ptr<LoopbackHub> hub;
    std::unique_ptr<FaultyTransport> a, b;
    Endpoint *to_b = nullptr, *to_a = nullptr;
};

std::vector<std::uint64_t> arrivals(std::uint64_t seed) {
    FaultPlan plan;
    plan.seed = seed;
    plan.delay_message = 0.5;
    Pair pair(plan);
    for (std::uint64_t i = 0; i < 100; ++i)
        EXPECT_EQ(pair.a->post(*pair.to_b, Header{i, 0}.view(), {}), Status::ok);
    EXPECT_TRUE(pump({pair.a.get(), pair.b.get()}, [&] { return pair.at_b.messages.size() == 100; }));
    EXPECT_GT(pair.b->counters().delayed_messages, 20u);
    std::vector<std::uint64_t> order;
    for (const auto& message : pair.at_b.messages) {
        std::uint64_t number = 0;
        std::memcpy(&number, message.header.data(), sizeof number);
        order.push_back(number);
    }
    return order;
}

TEST(Faulty, DelaysReorderAndTheSeedRepeatsThem) {
    const auto first = arrivals(1);
    EXPECT_FALSE(std::ranges::is_sorted(first));
    EXPECT_EQ(first, arrivals(1));
    EXPECT_NE(first, arrivals(2));
    auto sorted = first;
    std::ranges::sort(sorted);
    for (std::uint64_t i = 0; i < 100; ++i)
        EXPECT_EQ(sorted[i], i);
}

TEST(Faulty, HeldMessagesKeepItAwake) {
    FaultPlan plan;
    plan.delay_message = 1;
    plan.max_delay = 50;
    Pair pair(plan);
    ASSERT_EQ(pair.a->post(*pair.to_b, Header{1, 0}.view(), {}), Status::ok);
    pair.b->progress();
    if (pair.at_b.messages.empty()) {
        EXPECT_EQ(pair.b->arm(), Status::retry);
    }
    ASSERT_TRUE(pump({pair.b.get()}, [&] { return pair.at_b.messages.size() == 1; }));
    EXPECT_EQ(pair.b->arm(), Status::ok);
}

TEST(Faulty, FailedSendsSendNothing) {
    FaultPlan plan;
    plan.fail_send = 0.3;
    Pair pair(plan);
    std::size_t good = 0, failed = 0;
    for (std::uint64_t i = 0; i < 200; ++i) {
        const Status status = pair.a->post(*pair.to_b, Header{i, 0}.view(), {});
        ASSERT_TRUE(status == Status::ok || status == Status::memory);
        status == Status::ok ? ++good : ++failed;
    }
    EXPECT_EQ(failed, pair.a->counters().failed_sends);
    EXPECT_GT(failed, 20u);
    for (int i = 0; i < 1000; ++i)
        pair.b->progress();
    EXPECT_EQ(pair.at_b.messages.size(), good);
}

// Every seed is combined with every point at which the endpoint can be lost.
TEST(Faulty, LostEndpointEndsEveryOperationOnce) {
    const auto payload = make_payload(1, 5000);
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        for (std::uint64_t at : {1, 2, 7, 20}) {
            SCOPED_TRACE(testing::Message() << "seed " << seed << ", lost at send " << at);
            FaultPlan plan;
            plan.seed = seed;
            plan.delay_message = plan.delay_completion = 0.4;
            plan.lose_after = at;
            std::deque<Counted> sent, fetched;
            std::deque<std::vector<std::byte>> landing;
            Pair pair(plan);
            pair.at_b.then = [&](const Incoming& message) {
                if (!message.rendezvous) return;
                landing.emplace_back(message.bytes);
                fetched.emplace_back();
                fetched.back().start(
                    pair.b->fetch(message.rendezvous, landing.back().data(), message.bytes, &fetched.back()));
            };
            for (std::uint64_t i = 1; i <= 20; ++i) {
                sent.emplace_back();
                sent.back().start(pair.a->send(*pair.to_b, Header{i, 0}.view(), payload.data(),
                                               payload.size(), &sent.back()));
                if (i % 3 == 0) pair.b->progress();
            }
            ASSERT_TRUE(pump({pair.a.get(), pair.b.get()}, [&] {
                return std::ranges::all_of(sent, &Counted::done) &&
                       std::ranges::all_of(fetched, &Counted::done) && pair.at_a.lost.size() == 1;
            }));
            EXPECT_EQ(pair.at_a.lost.front(), pair.to_b);
            EXPECT_EQ(pair.a->post(*pair.to_b, Header{}.view(), {}), Status::peer_lost);
            std::size_t landed = 0;
            for (const Counted& each : sent) {
                EXPECT_EQ(each.calls, 1);
                EXPECT_TRUE(each.status == Status::ok || each.status == Status::peer_lost);
            }
            for (std::size_t i = 0; i < fetched.size(); ++i) {
                EXPECT_EQ(fetched[i].calls, 1);
                if (fetched[i].status != Status::ok) continue;
                ++landed;
                EXPECT_TRUE(holds_pattern(1, landing[i].data(), landing[i].size()));
            }
            EXPECT_LT(landed, 20u);
            pair.a->disconnect(pair.to_b);
        }
    }
}

TEST(Faulty, DestroyedWithWorkHeld) {
    const auto payload = make_payload(1, 5000);
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        FaultPlan plan;
        plan.seed = seed;
        plan.delay_message = plan.delay_completion = 0.7;
        plan.max_delay = 1000;
        std::deque<Counted> sent(10);
        {
            Pair pair(plan);
            pair.at_b.then = [&](const Incoming& message) {
                if (message.rendezvous && Header::of(message).seed % 2 == 0)
                    pair.b->discard(message.rendezvous);
            };
            for (std::size_t i = 0; i < sent.size(); ++i)
                sent[i].start(
                    pair.a->send(*pair.to_b, Header{i, 0}.view(), payload.data(), payload.size(), &sent[i]));
            for (int i = 0; i < 5; ++i) {
                pair.b->progress();
                pair.a->progress();
            }
        }
        for (const Counted& each : sent)
            EXPECT_EQ(each.calls, 1);
    }
}

}  // namespace
}  // namespace offpath::transport::test
