// What every transport must do: carry messages of every size, let payload wait until it is fetched or
// discarded, and sleep when idle.
#include "conformance_fixture.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <set>
#include <thread>

namespace offpath::transport::test {
namespace {

#ifdef OFFPATH_VERBS_ONLY  // tests/rdma
INSTANTIATE_TEST_SUITE_P(Transports, Conformance, testing::Values("ucx_verbs", "encrypted_ucx_verbs"),
                         [](const auto& each) { return each.param; });
#else
INSTANTIATE_TEST_SUITE_P(Transports, Conformance,
                         testing::Values("loopback", "loopback_shuffled", "faulty", "tcp", "ucx_tcp",
                                         "ucx_shm", "ucx_any", "ucx_in_process", "encrypted_tcp",
                                         "encrypted_ucx_tcp", "encrypted_loopback_shuffled"),
                         [](const auto& each) { return each.param; });

#endif

class Streams : public Conformance {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Streams);
#ifndef OFFPATH_VERBS_ONLY
INSTANTIATE_TEST_SUITE_P(Transports, Streams, testing::Values("tcp", "encrypted_tcp"),
                         [](const auto& each) { return each.param; });
#endif

TEST_P(Conformance, PostCarriesHeaderAndPayload) {
    const std::size_t headers[] = {1, 16, 127, 128};
    const std::size_t payloads[] = {0, 1, 63, 64, 1000, 4096, 8191, 8192};
    std::set<std::pair<std::size_t, std::size_t>> expected;
    for (std::size_t header : headers) {
        for (std::size_t payload : payloads) {
            const auto head = make_payload(header, header);
            const auto body = make_payload(payload, payload);
            ASSERT_EQ(a->post(*to_b, head, body), Status::ok);
            expected.emplace(header, payload);
        }
    }
    ASSERT_TRUE(pump_both([&] { return at_b.messages.size() == expected.size(); }));
    for (const auto& message : at_b.messages) {
        EXPECT_EQ(message.rendezvous, nullptr);
        ASSERT_EQ(message.data.size(), message.bytes);
        EXPECT_TRUE(holds_pattern(message.header.size(), message.header.data(), message.header.size()));
        EXPECT_TRUE(holds_pattern(message.bytes, message.data.data(), message.bytes));
        EXPECT_EQ(expected.erase({message.header.size(), message.bytes}), 1u);
    }
    EXPECT_TRUE(expected.empty());
}

TEST_P(Conformance, PostRefusesWhatIsTooBig) {
    const auto head = make_payload(1, Transport::max_wire_header + 1);
    const auto body = make_payload(1, Transport::max_post + 1);
    EXPECT_EQ(a->post(*to_b, head, {}), Status::invalid);
    EXPECT_EQ(a->post(*to_b, Header{}.view(), body), Status::invalid);
    Counted done;
    EXPECT_EQ(a->send(*to_b, head, body.data(), body.size(), &done), Status::invalid);
    a->progress();
    EXPECT_EQ(done.calls, 0);
}

TEST_P(Conformance, SendDeliversEverySize) {
    for (std::size_t bytes : {0ul, 1ul, 4095ul, 8192ul, 8193ul, 65535ul, 65536ul, 65537ul, 262144ul,
                              1048576ul, 1048577ul, 8388608ul}) {
        SCOPED_TRACE(bytes);
        at_b.messages.clear();
        const auto payload = make_payload(bytes, bytes);
        std::vector<std::byte> got(bytes);
        Counted sent, fetched;
        sent.start(a->send(*to_b, Header{bytes, bytes}.view(), payload.data(), bytes, &sent));
        ASSERT_TRUE(pump_both([&] { return !at_b.messages.empty(); }));
        const auto& message = at_b.messages.front();
        ASSERT_EQ(message.bytes, bytes);
        if (message.rendezvous) {
            fetched.start(b->fetch(message.rendezvous, got.data(), bytes, &fetched));
            ASSERT_TRUE(pump_both([&] { return fetched.done(); }));
            EXPECT_EQ(fetched.status, Status::ok);
        } else {
            got = message.data;
        }
        ASSERT_TRUE(pump_both([&] { return sent.done(); }));
        EXPECT_EQ(sent.status, Status::ok);
        EXPECT_EQ(sent.calls, 1);
        EXPECT_TRUE(holds_pattern(bytes, got.data(), bytes));
    }
}

TEST_P(Conformance, ManyInFlightBothWays) {
    constexpr std::size_t posts = 2000, sends = 300;
    constexpr std::size_t sizes[] = {100, 9000, 70000, 200000};
    std::deque<Counted> sent(2 * sends), fetched;
    std::vector<std::vector<std::byte>> payloads;
    for (std::size_t bytes : sizes)
        payloads.push_back(make_payload(bytes, bytes));
    std::deque<std::vector<std::byte>> landing;
    std::size_t verified = 0, wrong = 0, posted = 0;
    const auto receive = [&](Transport& here) {
        return [&](const Incoming& message) {
            const Header header = Header::of(message);
            if (!message.rendezvous) {
                const bool good = holds_pattern(header.bytes, message.data, message.bytes);
                message.bytes == 24 ? ++posted : ++verified;
                wrong += !good || header.bytes != message.bytes;
                return;
            }
            landing.emplace_back(message.bytes);
            fetched.emplace_back();
            fetched.back().start(
                here.fetch(message.rendezvous, landing.back().data(), message.bytes, &fetched.back()));
        };
    };
    at_a.then = receive(*a);
    at_b.then = receive(*b);
    const auto small = make_payload(24, 24);
    for (std::size_t i = 0; i < posts; ++i) {
        ASSERT_EQ(a->post(*to_b, Header{i, 24}.view(), small), Status::ok);
        ASSERT_EQ(b->post(*to_a, Header{i, 24}.view(), small), Status::ok);
        if (i >= sends) continue;
        const auto& payload = payloads[i % std::size(sizes)];
        const Header header{i, payload.size()};
        sent[2 * i].start(a->send(*to_b, header.view(), payload.data(), payload.size(), &sent[2 * i]));
        sent[2 * i + 1].start(
            b->send(*to_a, header.view(), payload.data(), payload.size(), &sent[2 * i + 1]));
    }
    const auto all_done = [](const auto& counted) {
        for (const Counted& each : counted)
            if (!each.done()) return false;
        return true;
    };
    ASSERT_TRUE(pump_both(
        [&] {
            return posted == 2 * posts && verified + fetched.size() == 2 * sends && all_done(fetched) &&
                   all_done(sent);
        },
        60s));
    EXPECT_EQ(wrong, 0u);
    for (std::size_t i = 0; i < landing.size(); ++i) {
        EXPECT_EQ(fetched[i].calls, 1);
        EXPECT_EQ(fetched[i].status, Status::ok);
        EXPECT_TRUE(holds_pattern(landing[i].size(), landing[i].data(), landing[i].size()));
    }
    for (const Counted& each : sent) {
        EXPECT_EQ(each.calls, 1);
        EXPECT_EQ(each.status, Status::ok);
    }
}

// The payload waits until the receiver fetches it. Except over tcp it waits at the sender. Other traffic
// continues.
TEST_P(Conformance, RendezvousWaitsUntilFetched) {
    constexpr std::size_t count = 40, bytes = 300000;
    std::deque<Counted> sent(count), fetched(count);
    std::vector<std::vector<std::byte>> payloads, got;
    for (std::size_t i = 0; i < count; ++i)
        payloads.push_back(make_payload(i, bytes));
    for (std::size_t i = 0; i < count; ++i)
        sent[i].start(a->send(*to_b, Header{i, bytes}.view(), payloads[i].data(), bytes, &sent[i]));
    ASSERT_TRUE(pump_both([&] { return at_b.messages.size() == count; }));
    ASSERT_EQ(a->post(*to_b, Header{1000, 0}.view(), {}), Status::ok);
    ASSERT_TRUE(pump_both([&] { return at_b.messages.size() == count + 1; }));
    for (const Counted& each : sent)
        EXPECT_TRUE(each.calls == 0 || pushes());

    got.assign(count, std::vector<std::byte>(bytes));
    std::vector<std::uint64_t> seeds;
    for (std::size_t i = count; i-- > 0;) {
        auto& message = at_b.messages[i];
        std::uint64_t seed = 0;
        std::memcpy(&seed, message.header.data(), sizeof seed);
        if (!message.rendezvous) continue;
        fetched[seed].start(b->fetch(message.rendezvous, got[seed].data(), bytes, &fetched[seed]));
        seeds.push_back(seed);
    }
    // The transport chooses the order, so the small message may be among the first `count`.
    auto& last = at_b.messages.back();
    if (last.rendezvous) {
        std::uint64_t seed = 0;
        std::memcpy(&seed, last.header.data(), sizeof seed);
        fetched[seed].start(b->fetch(last.rendezvous, got[seed].data(), bytes, &fetched[seed]));
        seeds.push_back(seed);
    }
    ASSERT_EQ(seeds.size(), count);
    ASSERT_TRUE(pump_both([&] {
        for (std::size_t i = 0; i < count; ++i)
            if (!sent[i].done() || !fetched[i].done()) return false;
        return true;
    }));
    for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(sent[i].status, Status::ok);
        EXPECT_EQ(fetched[i].status, Status::ok);
        EXPECT_TRUE(holds_pattern(i, got[i].data(), bytes));
    }
}

// A byte stream takes megabytes at once. A small message that comes after them must not wait until the peer
// has read them.
TEST_P(Streams, SmallMessagesPassPushedPayload) {
    constexpr std::size_t count = 64, bytes = 240 << 10;
    const auto payload = make_payload(1, bytes);
    // The receiver takes what does not come with its message.
    std::deque<Counted> sent(count + 1), fetched;
    std::deque<std::vector<std::byte>> landing;
    std::size_t large = 0;
    std::optional<std::size_t> large_before;
    at_b.then = [&](const Incoming& message) {
        if (message.bytes == 0) {
            large_before = large;
            return;
        }
        ++large;
        if (message.rendezvous == nullptr) return;
        landing.emplace_back(bytes);
        fetched.emplace_back();
        fetched.back().start(b->fetch(message.rendezvous, landing.back().data(), bytes, &fetched.back()));
    };
    const auto push = [&](std::size_t i) {
        (void)a->push_bytes(*to_b);
        sent[i].start(a->send(*to_b, Header{i, bytes}.view(), payload.data(), bytes, &sent[i]));
    };
    // Both sides are connected.
    ASSERT_EQ(b->post(*to_a, Header{1, 0}.view(), {}), Status::ok);
    ASSERT_TRUE(pump_both([&] { return at_a.messages.size() == 1; }));
    push(count);
    ASSERT_TRUE(pump_both([&] { return large == 1 && sent[count].done(); }));

    for (std::size_t i = 0; i < count; ++i)
        push(i);
    for (unsigned quiet = 0; quiet < 1000;)
        quiet = a->progress() == 0 ? quiet + 1 : 0;
    ASSERT_EQ(a->post(*to_b, Header{1, 0}.view(), {}), Status::ok);
    ASSERT_TRUE(pump_both([&] { return large_before.has_value() && large == count + 1; }));
    EXPECT_LT(*large_before, count / 2);
    ASSERT_TRUE(pump_both([&] { return std::ranges::all_of(sent, &Counted::done); }));
    ASSERT_TRUE(pump_both([&] { return std::ranges::all_of(fetched, &Counted::done); }));
    EXPECT_TRUE(std::ranges::all_of(sent, [](const Counted& each) { return each.status == Status::ok; }));
}

// A transport says up to which size pushing is better. Payload up to that size comes with its message.
TEST_P(Conformance, PushedPayloadComesWithItsMessage) {
    ASSERT_EQ(a->post(*to_b, Header{1, 0}.view(), {}), Status::ok);
    ASSERT_EQ(b->post(*to_a, Header{1, 0}.view(), {}), Status::ok);
    ASSERT_TRUE(pump_both([&] { return at_b.messages.size() == 1 && at_a.messages.size() == 1; }));
    const std::size_t most = a->push_bytes(*to_b);
    if (GetParam() == "ucx_tcp" || GetParam() == "encrypted_ucx_tcp") {
        EXPECT_GT(most, std::size_t{64} << 10);
    }
    if (GetParam() == "ucx_shm") {
        EXPECT_EQ(most, 0u);
    }
    if (most == 0) return;
    constexpr std::size_t count = 20;
    const auto payload = make_payload(9, most + 1);
    std::deque<Counted> sent(count);
    for (Counted& each : sent)
        each.start(a->send(*to_b, Header{9, most}.view(), payload.data(), most, &each));
    ASSERT_TRUE(pump_both([&] { return at_b.messages.size() == 1 + count; }));
    for (std::size_t i = 1; i <= count; ++i) {
        EXPECT_EQ(at_b.messages[i].rendezvous, nullptr);
        ASSERT_EQ(at_b.messages[i].data.size(), most);
        EXPECT_TRUE(holds_pattern(9, at_b.messages[i].data.data(), most));
    }
    ASSERT_TRUE(pump_both([&] {
        for (const Counted& each : sent)
            if (!each.done()) return false;
        return true;
    }));
    Counted larger;
    larger.start(a->send(*to_b, Header{9, most + 1}.view(), payload.data(), most + 1, &larger));
    ASSERT_TRUE(pump_both([&] { return at_b.messages.size() == 2 + count; }));
    ASSERT_NE(at_b.messages.back().rendezvous, nullptr);
    b->discard(at_b.messages.back().rendezvous);
    ASSERT_TRUE(pump_both([&] { return larger.done(); }));
}

TEST_P(Conformance, FetchOfAnotherSizeIsRefusedAndLeavesThePayload) {
    const auto payload = make_payload(5, 200000);
    std::vector<std::byte> got(200000);
    Counted sent, fetched;
    sent.start(a->send(*to_b, Header{5, 200000}.view(), payload.data(), payload.size(), &sent));
    ASSERT_TRUE(pump_both([&] { return !at_b.messages.empty(); }));
    void* rendezvous = at_b.messages.front().rendezvous;
    ASSERT_NE(rendezvous, nullptr);
    EXPECT_EQ(b->fetch(rendezvous, got.data(), 100, &fetched), Status::invalid);
    fetched.start(b->fetch(rendezvous, got.data(), got.size(), &fetched));
    ASSERT_TRUE(pump_both([&] { return fetched.done() && sent.done(); }));
    EXPECT_EQ(fetched.status, Status::ok);
    EXPECT_TRUE(holds_pattern(5, got.data(), got.size()));
}

TEST_P(Conformance, DiscardedPayloadFreesTheSender) {
    constexpr std::size_t count = 20;
    const auto payload = make_payload(5, 200000);
    std::deque<Counted> sent(count);
    at_b.then = [&](const Incoming& message) {
        if (Header::of(message).seed % 2 == 0) b->discard(message.rendezvous);
    };
    for (std::size_t i = 0; i < count; ++i)
        sent[i].start(a->send(*to_b, Header{i, 0}.view(), payload.data(), payload.size(), &sent[i]));
    ASSERT_TRUE(pump_both([&] { return at_b.messages.size() == count; }));
    for (auto& message : at_b.messages) {
        std::uint64_t seed = 0;
        std::memcpy(&seed, message.header.data(), sizeof seed);
        if (seed % 2 == 1) b->discard(message.rendezvous);
    }
    ASSERT_TRUE(pump_both([&] {
        for (const Counted& each : sent)
            if (!each.done()) return false;
        return true;
    }));
    for (const Counted& each : sent)
        EXPECT_EQ(each.calls, 1);
}

TEST_P(Conformance, HandlersMayPost) {
    constexpr std::uint64_t rounds = 1000;
    std::uint64_t last = 0;
    at_b.then = [&](const Incoming& message) {
        ASSERT_EQ(b->post(*to_a, Header::of(message).view(), {}), Status::ok);
    };
    at_a.then = [&](const Incoming& message) {
        last = Header::of(message).seed;
        if (last < rounds) {
            ASSERT_EQ(a->post(*to_b, Header{last + 1, 0}.view(), {}), Status::ok);
        }
    };
    ASSERT_EQ(a->post(*to_b, Header{1, 0}.view(), {}), Status::ok);
    ASSERT_TRUE(pump_both([&] { return last == rounds; }));
}

TEST_P(Conformance, SelfEndpoint) {
    Endpoint* self = nullptr;
    ASSERT_EQ(a->connect(a->address(), &self), Status::ok);
    ASSERT_EQ(a->post(*self, Header{1, 0}.view(), make_payload(1, 100)), Status::ok);
    EXPECT_TRUE(at_a.messages.empty()) << "messages come inside progress() only";
    ASSERT_TRUE(pump_both([&] { return at_a.messages.size() == 1; }));
    EXPECT_TRUE(holds_pattern(1, at_a.messages[0].data.data(), 100));

    constexpr std::size_t bytes = 1 << 20;
    const auto payload = make_payload(2, bytes);
    std::vector<std::byte> got(bytes);
    Counted sent, fetched, given_up;
    sent.start(a->send(*self, Header{2, bytes}.view(), payload.data(), bytes, &sent));
    ASSERT_TRUE(pump_both([&] { return at_a.messages.size() == 2; }));
    ASSERT_NE(at_a.messages[1].rendezvous, nullptr);
    fetched.start(a->fetch(at_a.messages[1].rendezvous, got.data(), bytes, &fetched));
    ASSERT_TRUE(pump_both([&] { return fetched.done() && sent.done(); }));
    EXPECT_TRUE(holds_pattern(2, got.data(), bytes));

    given_up.start(a->send(*self, Header{3, bytes}.view(), payload.data(), bytes, &given_up));
    ASSERT_TRUE(pump_both([&] { return at_a.messages.size() == 3; }));
    a->discard(at_a.messages[2].rendezvous);
    ASSERT_TRUE(pump_both([&] { return given_up.done(); }));
    a->disconnect(self);
}

TEST_P(Conformance, ArmedDescriptorWakesUp) {
    // Connections are made at the first use, so both sides connect before the measurement.
    ASSERT_EQ(a->post(*to_b, Header{1, 0}.view(), {}), Status::ok);
    ASSERT_EQ(b->post(*to_a, Header{1, 0}.view(), {}), Status::ok);
    ASSERT_TRUE(pump_both([&] { return at_b.messages.size() == 1 && at_a.messages.size() == 1; }));

    // Each message is posted when `b` is armed and about to sleep. `a` continues until all have arrived.
    constexpr std::uint64_t messages = 20;
    std::atomic<std::uint64_t> sleeps{0};
    std::atomic<bool> over{false};
    std::thread poster([&] {
        for (std::uint64_t i = 0, seen = 0; !over;) {
            a->progress();
            const std::uint64_t now = sleeps;
            if (i == messages || now == seen) {
                std::this_thread::yield();
                continue;
            }
            seen = now;
            EXPECT_EQ(a->post(*to_b, Header{i++, 0}.view(), {}), Status::ok);
        }
    });
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (at_b.messages.size() < 1 + messages && std::chrono::steady_clock::now() < deadline) {
        while (b->progress() > 0) {
        }
        if (at_b.messages.size() >= 1 + messages) break;
        const Status armed = b->arm();
        if (armed == Status::retry) continue;
        EXPECT_EQ(armed, Status::ok);
        if (armed != Status::ok) break;
        ++sleeps;
        pollfd poller{b->event_fd(), POLLIN, 0};
        EXPECT_EQ(poll(&poller, 1, 10000), 1) << "asleep for 10 s with messages on their way";
    }
    over = true;
    poster.join();
    EXPECT_EQ(at_b.messages.size(), 1 + messages);
    EXPECT_GE(sleeps, messages);
}

TEST_P(Conformance, IdleTransportSleeps) {
    ASSERT_EQ(a->post(*to_b, Header{1, 0}.view(), {}), Status::ok);
    ASSERT_TRUE(pump_both([&] { return at_b.messages.size() == 1; }));
    int wake_ups = 0;
    const auto deadline = std::chrono::steady_clock::now() + 600ms;
    while (std::chrono::steady_clock::now() < deadline) {
        while (a->progress() + b->progress() > 0) {
        }
        if (b->arm() == Status::retry) continue;
        pollfd poller{b->event_fd(), POLLIN, 0};
        wake_ups += poll(&poller, 1, 100);
    }
    // A few events come late, from connecting. A descriptor that stays readable would bring thousands.
    EXPECT_LT(wake_ups, 10);
}

TEST_P(Conformance, RubbishAddressIsAnError) {
    Endpoint* endpoint = nullptr;
    auto address = b->address();
    EXPECT_TRUE(is_error(a->connect({}, &endpoint)));
    EXPECT_TRUE(is_error(a->connect(make_payload(1, 300), &endpoint)));
    EXPECT_TRUE(is_error(a->connect(std::span(address).first(address.size() - 1), &endpoint)));
    address.back() ^= std::byte{1};
    EXPECT_TRUE(is_error(a->connect(address, &endpoint)));
    EXPECT_EQ(endpoint, nullptr);
}

TEST_P(Conformance, DescribesItself) {
    EXPECT_FALSE(a->describe().empty());
}

}  // namespace
}  // namespace offpath::transport::test
