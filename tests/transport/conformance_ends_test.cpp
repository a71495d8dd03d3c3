// What every transport must do when an endpoint or a transport ends with work in flight.
#include "../emulation.h"
#include "conformance_fixture.h"

#include <atomic>
#include <deque>
#include <thread>

namespace offpath::transport::test {
namespace {

// Disconnecting ends the operations in flight, but only inside progress().
TEST_P(Conformance, DisconnectEndsWhatIsInFlight) {
    constexpr std::size_t count = 8, bytes = 1 << 20;
    const auto payload = make_payload(1, bytes);
    bool in_progress = false;
    std::deque<Counted> sent(count);
    for (Counted& each : sent) {
        each.allowed = &in_progress;
        each.start(a->send(*to_b, Header{1, bytes}.view(), payload.data(), bytes, &each));
    }
    ASSERT_TRUE(pump_both([&] { return at_b.messages.size() == count; }));
    a->disconnect(to_b);
    const auto all_done = [&] {
        for (const Counted& each : sent)
            if (!each.done()) return false;
        return true;
    };
    in_progress = true;
    ASSERT_TRUE(pump({a.get()}, all_done, 10s));
    for (const Counted& each : sent) {
        EXPECT_EQ(each.calls, 1);
        EXPECT_TRUE(each.status == Status::peer_lost || (each.status == Status::ok && pushes()));
        EXPECT_TRUE(each.always_allowed || each.status == Status::ok);
    }
    EXPECT_TRUE(at_a.lost.empty());
    // The payloads are gone. Fetching one is an error, not a crash.
    std::vector<std::byte> got(bytes);
    std::deque<Counted> fetched(count);
    for (std::size_t i = 0; i < count; ++i) {
        auto& message = at_b.messages[i];
        if (i % 2 == 0)
            b->discard(message.rendezvous);
        else
            fetched[i].start(b->fetch(message.rendezvous, got.data(), bytes, &fetched[i]));
    }
    ASSERT_TRUE(pump_both(
        [&] {
            for (std::size_t i = 1; i < count; i += 2)
                if (!fetched[i].done()) return false;
            return true;
        },
        10s));
    for (std::size_t i = 1; i < count; i += 2)
        EXPECT_TRUE(is_error(fetched[i].status) || (fetched[i].status == Status::ok && pushes()));
}

// When a transport ends with work in flight, nothing leaks and no completion is called twice.
TEST_P(Conformance, DestructionEndsWhatIsInFlight) {
    constexpr std::size_t count = 8, bytes = 1 << 20;
    const auto payload = make_payload(1, bytes);
    std::deque<Counted> sent(count), fetched(count);
    std::vector<std::vector<std::byte>> got(count, std::vector<std::byte>(bytes));
    for (Counted& each : sent)
        each.start(a->send(*to_b, Header{1, bytes}.view(), payload.data(), bytes, &each));
    ASSERT_TRUE(pump_both([&] { return at_b.messages.size() == count; }));
    for (std::size_t i = 0; i < count / 2; ++i)
        fetched[i].start(b->fetch(at_b.messages[i].rendezvous, got[i].data(), bytes, &fetched[i]));
    a.reset();
    for (const Counted& each : sent)
        EXPECT_EQ(each.calls, 1);
    b.reset();
    for (std::size_t i = 0; i < count / 2; ++i)
        EXPECT_EQ(fetched[i].calls, 1);
}

// Each transport runs in its own thread, like those of proxies. One of them ends while the other fetches from
// it.
TEST_P(Conformance, OneThreadEach) {
    if ((GetParam() == "ucx_shm" || GetParam() == "ucx_any") && offpath::test::emulated())
        GTEST_SKIP() << "UCX's shared memory between two threads stalls under qemu's user mode";
    constexpr std::size_t count = 200, bytes = 100000;
    const auto payload = make_payload(3, bytes);
    std::atomic<std::size_t> landed{0}, failed{0};
    std::atomic<bool> stop{false};
    struct Fetch : Completion {
        std::vector<std::byte> bytes;
        std::atomic<std::size_t>*landed = nullptr, *failed = nullptr;
        void end(Status status) {
            const bool good = status == Status::ok && holds_pattern(3, bytes.data(), bytes.size());
            ++(good ? *landed : *failed);
        }
    };
    std::deque<Fetch> fetches;
    at_b.then = [&](const Incoming& message) {
        ASSERT_NE(message.rendezvous, nullptr);
        Fetch& fetch = fetches.emplace_back();
        fetch.bytes.resize(message.bytes);
        fetch.landed = &landed;
        fetch.failed = &failed;
        fetch.function = [](Completion* self, Status status) { static_cast<Fetch*>(self)->end(status); };
        const Status status = b->fetch(message.rendezvous, fetch.bytes.data(), message.bytes, &fetch);
        if (status != Status::in_progress) fetch.end(status);
    };
    std::thread receiver([&] {
        while (!stop)
            b->progress();
    });
    std::deque<Counted> sent(count);
    for (Counted& each : sent) {
        each.start(a->send(*to_b, Header{3, bytes}.view(), payload.data(), bytes, &each));
        a->progress();
    }
    const auto done = [&] {
        for (const Counted& each : sent)
            if (!each.done()) return false;
        return true;
    };
    EXPECT_TRUE(pump(
        {a.get()}, [&] { return done() && landed == count; }, 60s));
    EXPECT_EQ(failed, 0u);

    sent.clear();
    sent.resize(20);
    for (Counted& each : sent)
        each.start(a->send(*to_b, Header{3, bytes}.view(), payload.data(), bytes, &each));
    pump(
        {a.get()}, [&] { return landed > count + 3; }, 5s);
    a.reset();
    EXPECT_TRUE(done());
    for (const Counted& each : sent)
        EXPECT_EQ(each.calls, 1);
    stop = true;
    receiver.join();
    b.reset();  // must end before the buffers that it may still complete
}

}  // namespace
}  // namespace offpath::transport::test
