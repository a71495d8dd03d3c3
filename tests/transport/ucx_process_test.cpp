// Two processes over UCX: what arrives, and what happens when the other one is killed.
#include "../other_program.h"
#include "harness.h"

#include "transport/ucx/ucx_transport.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <deque>

namespace offpath::transport::test {
namespace {

// A running peer_main.cpp.
class Peer {
  public:
    Peer(const std::string& tls, const std::string& mode) {
        int to[2], from[2];
        EXPECT_EQ(pipe(to) | pipe(from), 0);
        pid_ = fork();
        if (pid_ == 0) {
            dup2(to[0], 0);
            dup2(from[1], 1);
            for (int fd : {to[0], to[1], from[0], from[1]})
                close(fd);
            offpath::test::become_other_program(TRANSPORT_PEER, {tls, mode});
        }
        close(to[0]);
        close(from[1]);
        in_ = to[1];
        // UCX may print warnings there too.
        std::string line;
        for (char letter = 0; read(from[0], &letter, 1) == 1;) {
            if (letter != '\n')
                line += letter;
            else if (line.starts_with(prefix))
                break;
            else
                line.clear();
        }
        close(from[0]);
        for (std::size_t i = prefix.size(); i + 1 < line.size(); i += 2)
            address.push_back(static_cast<std::byte>(std::stoul(line.substr(i, 2), nullptr, 16)));
    }
    void meet(const Transport& here) {
        static constexpr char digits[] = "0123456789abcdef";
        std::string line;
        for (std::byte byte : here.address()) {
            line += digits[std::to_integer<unsigned>(byte) >> 4];
            line += digits[std::to_integer<unsigned>(byte) & 15];
        }
        line += '\n';
        EXPECT_EQ(write(in_, line.data(), line.size()), static_cast<ssize_t>(line.size()));
    }
    void stop() { ::kill(pid_, SIGSTOP); }
    void kill() {
        ::kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }
    ~Peer() {
        close(in_);
        if (pid_ == 0) return;
        ::kill(pid_, SIGTERM);
        waitpid(pid_, nullptr, 0);
    }
    std::vector<std::byte> address;

  private:
    static constexpr std::string_view prefix = "address ";
    pid_t pid_ = 0;
    int in_ = -1;
};

class UcxProcess : public testing::TestWithParam<std::string> {
  protected:
    void SetUp() override {
        UcxConfig config;
        config.tls = tls();
        std::string problem;
        ASSERT_EQ(make_ucx_transport(config, transport, problem), Status::ok) << problem;
        transport->set_handler(&recorder);
    }
    std::string tls() const { return GetParam() == "any" ? "all" : GetParam() + ",self"; }
    Endpoint* meet(Peer& peer) {
        peer.meet(*transport);
        Endpoint* endpoint = nullptr;
        EXPECT_EQ(transport->connect(peer.address, &endpoint), Status::ok);
        return endpoint;
    }
    bool pump_here(const std::function<bool()>& done, std::chrono::milliseconds limit = 10s) {
        return pump({transport.get()}, done, limit);
    }
    static bool all_done(const std::deque<Counted>& counted) {
        for (const Counted& each : counted)
            if (!each.done()) return false;
        return true;
    }
    void expect_dead(Endpoint& endpoint) {
        Counted done;
        const auto payload = make_payload(1, 100);
        EXPECT_EQ(transport->post(endpoint, Header{}.view(), {}), Status::peer_lost);
        EXPECT_EQ(transport->send(endpoint, Header{}.view(), payload.data(), payload.size(), &done),
                  Status::peer_lost);
    }

    Recorder recorder;
    std::unique_ptr<Transport> transport;
};

#ifdef OFFPATH_VERBS_ONLY  // tests/rdma
INSTANTIATE_TEST_SUITE_P(Tls, UcxProcess, testing::Values("rc_verbs,ud_verbs"),
                         [](const auto&) { return "verbs"; });
#else
INSTANTIATE_TEST_SUITE_P(Tls, UcxProcess, testing::Values("tcp", "sm", "any"),
                         [](const auto& each) { return each.param; });
#endif

TEST_P(UcxProcess, EchoKeepsEveryByte) {
    Peer peer(tls(), "echo");
    Endpoint* endpoint = meet(peer);
    ASSERT_NE(endpoint, nullptr);
    std::deque<std::vector<std::byte>> landing;
    std::deque<Counted> sent, fetched;
    std::size_t back = 0, wrong = 0;
    recorder.then = [&](const Incoming& message) {
        const Header header = Header::of(message);
        wrong += header.bytes != message.bytes;
        if (!message.rendezvous) {
            wrong += !holds_pattern(header.bytes, message.data, message.bytes);
            ++back;
            return;
        }
        landing.emplace_back(message.bytes);
        fetched.emplace_back();
        fetched.back().start(
            transport->fetch(message.rendezvous, landing.back().data(), message.bytes, &fetched.back()));
    };
    const std::size_t sizes[] = {0, 1, 100, 8192, 8193, 65535, 65536, 65537, 500000, 1 << 20, 8 << 20};
    std::vector<std::vector<std::byte>> payloads;
    std::size_t expected = 0;
    for (std::size_t bytes : sizes)
        payloads.push_back(make_payload(bytes, bytes));
    for (int round = 0; round < 3; ++round) {
        for (const auto& payload : payloads) {
            const Header header{payload.size(), payload.size()};
            sent.emplace_back();
            sent.back().start(
                transport->send(*endpoint, header.view(), payload.data(), payload.size(), &sent.back()));
            ++expected;
            if (payload.size() > Transport::max_post) continue;
            ASSERT_EQ(transport->post(*endpoint, header.view(), payload), Status::ok);
            ++expected;
        }
    }
    ASSERT_TRUE(pump_here(
        [&] { return back + fetched.size() == expected && all_done(sent) && all_done(fetched); }, 60s));
    EXPECT_EQ(wrong, 0u);
    for (const auto& got : landing)
        EXPECT_TRUE(holds_pattern(got.size(), got.data(), got.size()));
    for (const Counted& each : sent)
        EXPECT_EQ(each.status, Status::ok);
}

TEST_P(UcxProcess, KilledReceiverEndsEverythingOnce) {
    Peer victim(tls(), "hold"), other(tls(), "echo");
    Endpoint* endpoint = meet(victim);
    ASSERT_NE(endpoint, nullptr);
    const auto payload = make_payload(1, 1 << 20);
    std::deque<Counted> sent(8);
    for (Counted& each : sent)
        each.start(transport->send(*endpoint, Header{1, 0}.view(), payload.data(), payload.size(), &each));
    for (std::uint64_t i = 0; i < 1000; ++i)
        ASSERT_EQ(transport->post(*endpoint, Header{i, 0}.view(), std::span(payload).first(4000)),
                  Status::ok);
    (void)pump_here([] { return false; }, 300ms);
    for (const Counted& each : sent)
        ASSERT_FALSE(each.done());

    victim.kill();
    ASSERT_TRUE(pump_here([&] { return !recorder.lost.empty() && all_done(sent); }));
    EXPECT_EQ(recorder.lost, std::vector<Endpoint*>{endpoint});
    for (const Counted& each : sent) {
        EXPECT_EQ(each.calls, 1);
        EXPECT_EQ(each.status, Status::peer_lost);
    }
    expect_dead(*endpoint);
    transport->disconnect(endpoint);

    // The connection to another peer still works.
    recorder.messages.clear();
    Endpoint* alive = meet(other);
    ASSERT_NE(alive, nullptr);
    ASSERT_EQ(transport->post(*alive, Header{1, 0}.view(), {}), Status::ok);
    EXPECT_TRUE(pump_here([&] { return !recorder.messages.empty(); }));
    EXPECT_EQ(recorder.lost.size(), 1u);
}

// Payloads that were pushed into a connection whose other side does not read end too.
TEST_P(UcxProcess, KilledReceiverEndsWhatWasPushed) {
    Peer victim(tls(), "hold");
    Endpoint* endpoint = meet(victim);
    ASSERT_NE(endpoint, nullptr);
    ASSERT_EQ(transport->post(*endpoint, Header{}.view(), {}), Status::ok);
    (void)pump_here([] { return false; }, 300ms);
    const std::size_t bytes = std::max<std::size_t>(transport->push_bytes(*endpoint), 60000);
    victim.stop();
    const auto payload = make_payload(1, bytes);
    std::deque<Counted> sent(200);
    for (Counted& each : sent)
        each.start(transport->send(*endpoint, Header{1, 0}.view(), payload.data(), bytes, &each));
    (void)pump_here([] { return false; }, 300ms);
    ASSERT_FALSE(sent.back().done());
    victim.kill();
    ASSERT_TRUE(pump_here([&] { return !recorder.lost.empty() && all_done(sent); }));
    for (const Counted& each : sent) {
        EXPECT_EQ(each.calls, 1);
        EXPECT_TRUE(each.status == Status::ok || each.status == Status::peer_lost);
    }
    EXPECT_EQ(sent.back().status, Status::peer_lost);
    expect_dead(*endpoint);
}

TEST_P(UcxProcess, KilledSenderLeavesOffersThatFail) {
    Peer victim(tls(), "flood");
    Endpoint* endpoint = meet(victim);
    ASSERT_NE(endpoint, nullptr);
    ASSERT_EQ(transport->post(*endpoint, Header{}.view(), {}), Status::ok);
    ASSERT_TRUE(pump_here([&] { return recorder.messages.size() == 8; }));
    std::vector<std::byte> got(1 << 20);
    std::deque<Counted> fetched(6);
    // Two fetches are outstanding at the death. Two are started before the death is known, and two after. Two
    // messages are discarded.
    const auto fetch = [&](std::size_t i) {
        fetched[i].start(
            transport->fetch(recorder.messages[i].rendezvous, got.data(), got.size(), &fetched[i]));
    };
    fetch(0);
    fetch(1);
    victim.kill();
    fetch(2);
    fetch(3);
    ASSERT_TRUE(pump_here([&] { return !recorder.lost.empty(); }));
    fetch(4);
    fetch(5);
    transport->discard(recorder.messages[6].rendezvous);
    transport->discard(recorder.messages[7].rendezvous);
    ASSERT_TRUE(pump_here([&] { return all_done(fetched); }));
    for (const Counted& each : fetched)
        EXPECT_EQ(each.calls, 1);
    for (std::size_t i : {4, 5})
        EXPECT_TRUE(is_error(fetched[i].status));
    expect_dead(*endpoint);
}

// Nothing is outstanding, and this side sleeps. The death must wake it.
TEST_P(UcxProcess, KilledPeerWakesASleeper) {
    Peer victim(tls(), "echo");
    Endpoint* endpoint = meet(victim);
    ASSERT_NE(endpoint, nullptr);
    ASSERT_EQ(transport->post(*endpoint, Header{1, 0}.view(), {}), Status::ok);
    ASSERT_TRUE(pump_here([&] { return !recorder.messages.empty(); }));
    victim.kill();
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (recorder.lost.empty() && std::chrono::steady_clock::now() < deadline) {
        while (transport->progress() > 0) {
        }
        if (!recorder.lost.empty() || transport->arm() != Status::ok) continue;
        pollfd poller{transport->event_fd(), POLLIN, 0};
        poll(&poller, 1, 60000);
    }
    EXPECT_EQ(recorder.lost.size(), 1u);
}

TEST_P(UcxProcess, PeerThatIsGoneAlready) {
    Peer victim(tls(), "hold");
    victim.kill();
    Endpoint* endpoint = nullptr;
    if (transport->connect(victim.address, &endpoint) != Status::ok) return;
    const auto payload = make_payload(1, 1 << 20);
    std::deque<Counted> sent(2);
    for (Counted& each : sent)
        each.start(transport->send(*endpoint, Header{1, 0}.view(), payload.data(), payload.size(), &each));
    ASSERT_TRUE(pump_here([&] { return all_done(sent); }));
    for (const Counted& each : sent)
        EXPECT_TRUE(is_error(each.status));
}

TEST(UcxTransport, SaysWhatIsWrongWithItsSettings) {
    UcxConfig config;
    config.net_devices = "nosuchdevice0";
    config.tls = "tcp";
    std::unique_ptr<Transport> transport;
    std::string problem;
    EXPECT_EQ(make_ucx_transport(config, transport, problem), Status::unavailable);
    EXPECT_EQ(transport, nullptr);
    EXPECT_NE(problem.find("nosuchdevice0"), std::string::npos) << problem;
}

TEST(UcxTransport, FactsNameVersionsAndResources) {
    const UcxFacts facts = ucx_facts();
    EXPECT_EQ(facts.problem, "");
    EXPECT_FALSE(facts.resources.empty());
    EXPECT_NE(facts.loaded_version.find('.'), std::string::npos);
    for (const auto& resource : facts.resources)
        EXPECT_NE(resource.find('/'), std::string::npos) << resource;
}

}  // namespace
}  // namespace offpath::transport::test
