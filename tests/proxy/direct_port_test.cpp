// Who may use a direct port: the handshake by hand, by a client that follows it and by others that do not.
#include "proxy/direct_port.h"

#include "transport/loopback/loopback.h"
#include "transport/tcp/address.h"
#include "transport/tcp/tcp_transport.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <optional>

namespace offpath::proxy {
namespace {

namespace direct = rma::direct;

constexpr engine::JobId direct_job{11, 12};

std::unique_ptr<transport::Transport> make_tcp(bool listen) {
    transport::TcpConfig config;
    config.devices = "lo";
    config.listen = listen;
    std::unique_ptr<transport::Transport> made;
    std::string problem;
    EXPECT_EQ(transport::make_tcp_transport(config, made, problem), Status::ok) << problem;
    return made;
}

struct Port {
    transport::LoopbackHub hub;
    std::unique_ptr<transport::Transport> fabric = hub.join();
    engine::Engine engine{*fabric, 1};
    DirectPort port{make_tcp(true), engine};
    ~Port() { engine.close(); }
};

class Stranger : public transport::Handler {
  public:
    explicit Stranger(Port& port) : port_(port), transport_(make_tcp(false)) {
        transport_->set_handler(this);
        EXPECT_EQ(transport_->connect(port.port.address(), &endpoint_), Status::ok);
    }
    ~Stranger() override { transport_->set_handler(nullptr); }

    void say(const control::Message& message) {
        const direct::Handshake header{direct::Kind::handshake, 3};
        EXPECT_EQ(transport_->post(*endpoint_, direct::bytes_of(header), control::encode_message(message)),
                  Status::ok);
    }
    void call() { say(control::DirectCall{transport_->address()}); }
    void ask(std::uint64_t token) {
        direct::Request request{};
        request.kind = direct::Kind::request;
        request.token = token;
        request.number = 99;
        request.bytes = 8;
        request.operation = rma::OpKind::get;
        (void)transport_->post(*endpoint_, direct::bytes_of(request), {});
    }
    static direct::Request request_of(std::uint64_t token, std::uint64_t number, std::uint32_t bytes = 8) {
        direct::Request request{};
        request.kind = direct::Kind::request;
        request.token = token;
        request.number = number;
        request.bytes = bytes;
        request.operation = rma::OpKind::put;
        return request;
    }
    void ask_together(std::uint32_t count, std::span<const std::byte> requests) {
        const direct::Bundle header{direct::Kind::requests, count};
        (void)transport_->post(*endpoint_, direct::bytes_of(header), requests);
    }
    // Proves that this caller knows the job's secret.
    bool enter(const control::Secret& secret) {
        call();
        if (!until([&] { return challenge.has_value(); })) return false;
        say(proof(secret));
        return until([&] { return welcome.has_value(); });
    }
    control::DirectProof proof(const control::Secret& secret) {
        control::DirectProof made{challenge->nonce, nonce, direct_job.high, direct_job.low, 0, 4, {}};
        made.mac = control::handshake_mac(secret, challenge->nonce, nonce, made);
        return made;
    }
    // False: `over` did not hold within `seconds`.
    template <typename Over>
    bool until(Over&& over, double seconds = 60) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
        while (!over()) {
            if (std::chrono::steady_clock::now() > end) return false;
            transport_->progress();
            port_.port.progress();
        }
        return true;
    }
    void on_message(const transport::Incoming& message) override {
        direct::Handshake handshake;
        direct::Answer came;
        if (read(message.header, direct::Kind::answer, came)) answer = came;
        direct::Bundle bundle;
        std::span<const std::byte> rest(message.data, message.bytes);
        if (read(message.header, direct::Kind::answers, bundle)) {
            for (std::uint32_t i = 0; i < bundle.count; ++i) {
                ASSERT_TRUE(direct::take(rest, direct::Kind::answer, came));
                EXPECT_EQ(came.bytes, 0u);
                answers.push_back(came);
            }
            EXPECT_TRUE(rest.empty());
        }
        if (!read(message.header, direct::Kind::handshake, handshake)) return;
        EXPECT_EQ(handshake.path, 3u);
        control::Message said;
        std::string problem;
        ASSERT_EQ(control::decode_message({message.data, message.bytes}, said, problem), Status::ok);
        if (const auto* one = std::get_if<control::Challenge>(&said)) challenge = *one;
        if (const auto* one = std::get_if<control::DirectWelcome>(&said)) welcome = *one;
    }
    void on_endpoint_lost(transport::Endpoint&) override { lost = true; }

    std::optional<control::Challenge> challenge;
    std::optional<control::DirectWelcome> welcome;
    std::optional<direct::Answer> answer;
    std::vector<direct::Answer> answers;
    bool lost = false;
    const control::Nonce nonce = control::draw_nonce();

  private:
    Port& port_;
    std::unique_ptr<transport::Transport> transport_;
    transport::Endpoint* endpoint_ = nullptr;
};

TEST(DirectPort, LetsInWhoKnowsTheSecretAndProvesThatItDoes) {
    Port port;
    const control::Secret secret = port.port.admit(direct_job, 4);
    Stranger caller(port);
    caller.call();
    ASSERT_TRUE(caller.until([&] { return caller.challenge.has_value(); }));
    caller.say(caller.proof(secret));
    ASSERT_TRUE(caller.until([&] { return caller.welcome.has_value(); }));
    EXPECT_EQ(caller.welcome->mac,
              control::handshake_mac(secret, caller.challenge->nonce, caller.nonce, *caller.welcome));
    // The window does not exist.
    caller.ask(caller.welcome->token);
    ASSERT_TRUE(caller.until([&] { return caller.answer.has_value(); }));
    EXPECT_EQ(caller.answer->number, 99u);
    EXPECT_EQ(static_cast<Status>(caller.answer->status), Status::access);
    // The last rank of the job leaves.
    port.port.forget(direct_job, 4);
    EXPECT_TRUE(caller.until([&] { return caller.lost; }));
}

TEST(DirectPort, RefusesWhoDoesNotKnowTheSecret) {
    Port port;
    const control::Secret secret = port.port.admit(direct_job, 4);
    const control::Secret other = port.port.admit({13, 14}, 4);
    {
        Stranger wrong(port);
        wrong.call();
        ASSERT_TRUE(wrong.until([&] { return wrong.challenge.has_value(); }));
        wrong.say(wrong.proof(other));
        EXPECT_TRUE(wrong.until([&] { return wrong.lost; }));
        EXPECT_FALSE(wrong.welcome.has_value());
    }
    {
        // Repeating another client's messages does not help, because the challenge differs.
        Stranger first(port), second(port);
        first.call();
        ASSERT_TRUE(first.until([&] { return first.challenge.has_value(); }));
        const control::DirectProof overheard = first.proof(secret);
        first.say(overheard);
        ASSERT_TRUE(first.until([&] { return first.welcome.has_value(); }));
        second.call();
        ASSERT_TRUE(second.until([&] { return second.challenge.has_value(); }));
        second.say(overheard);
        control::DirectProof turned = overheard;
        turned.challenge = second.challenge->nonce;
        second.say(turned);
        EXPECT_TRUE(second.until([&] { return second.lost; }));
        EXPECT_FALSE(second.welcome.has_value());
    }
    {
        // The rank is not served here.
        Stranger unknown(port);
        unknown.call();
        ASSERT_TRUE(unknown.until([&] { return unknown.challenge.has_value(); }));
        control::DirectProof proof = unknown.proof(secret);
        proof.target = 5;
        unknown.say(proof);
        EXPECT_TRUE(unknown.until([&] { return unknown.lost; }));
    }
}

TEST(DirectPort, AnswersRequestsThatCameTogether) {
    Port port;
    Stranger caller(port);
    ASSERT_TRUE(caller.enter(port.port.admit(direct_job, 4)));
    const std::vector<std::byte> operands(8);
    std::vector<std::byte> bundle;
    for (std::uint64_t number = 5; number < 8; ++number)
        direct::append(bundle, Stranger::request_of(caller.welcome->token, number), operands);
    caller.ask_together(3, bundle);
    ASSERT_TRUE(caller.until([&] { return caller.answers.size() >= 3; }));
    // The window does not exist.
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(caller.answers[i].number, 5 + i);
        EXPECT_EQ(static_cast<Status>(caller.answers[i].status), Status::access);
    }
    EXPECT_FALSE(caller.lost);
}

TEST(DirectPort, CutsOffWhoseBundlesAreNone) {
    Port port;
    const control::Secret secret = port.port.admit(direct_job, 4);
    const std::vector<std::byte> operands(8);
    const auto ends = [&](auto&& bundle_of, std::uint32_t count) {
        Stranger caller(port);
        if (!caller.enter(secret)) return false;
        caller.ask_together(count, bundle_of(caller.welcome->token));
        return caller.until([&] { return caller.lost; });
    };
    const auto well = [&](std::uint64_t token) {
        std::vector<std::byte> bundle;
        direct::append(bundle, Stranger::request_of(token, 1), operands);
        return bundle;
    };
    EXPECT_TRUE(ends(well, 2)) << "fewer than are said";
    EXPECT_TRUE(ends(well, 0)) << "more than are said";
    EXPECT_TRUE(ends(
        [&](std::uint64_t token) {
            std::vector<std::byte> bundle = well(token);
            bundle.pop_back();
            return bundle;
        },
        1))
        << "operands that are not all there";
    EXPECT_TRUE(ends(
        [&](std::uint64_t token) {
            std::vector<std::byte> bundle;
            direct::append(bundle, Stranger::request_of(token, 1, 0xffffffff), operands);
            return bundle;
        },
        1))
        << "operands of 4 GiB";
    Stranger victim(port);
    ASSERT_TRUE(victim.enter(secret));
    EXPECT_TRUE(ends(
        [&](std::uint64_t token) {
            std::vector<std::byte> bundle = well(token);
            direct::append(bundle, Stranger::request_of(victim.welcome->token, 2), operands);
            return bundle;
        },
        2))
        << "a request in somebody else's name";
    EXPECT_FALSE(victim.lost);
    EXPECT_TRUE(victim.answers.empty());
    // It does not get answers that belong to others either.
    victim.ask_together(1, well(victim.welcome->token));
    ASSERT_TRUE(victim.until([&] { return !victim.answers.empty(); }));
    EXPECT_EQ(victim.answers.size(), 1u);
    EXPECT_EQ(victim.answers[0].number, 1u);
}

TEST(DirectPort, SaysNothingToWhoHasProvedNothing) {
    Port port;
    (void)port.port.admit(direct_job, 4);
    Stranger caller(port);
    caller.ask(0);
    caller.ask(1);
    EXPECT_FALSE(caller.until([&] { return caller.answer.has_value(); }, 0.2));
    caller.call();
    ASSERT_TRUE(caller.until([&] { return caller.challenge.has_value(); }));
    caller.ask(0);
    EXPECT_FALSE(caller.until([&] { return caller.answer.has_value(); }, 0.2));
}

// If a call could carry an address with a port, a stranger could make the device connect anywhere.
TEST(DirectPort, ConnectsToNobody) {
    Port port;
    auto victim = make_tcp(true);
    Stranger caller(port);
    caller.say(control::DirectCall{victim->address()});
    caller.say(control::DirectCall{{std::byte{1}}});
    unsigned events = 0;
    EXPECT_FALSE(caller.until([&] { return (events += victim->progress()) > 0 || caller.challenge; }, 0.2));
}

TEST(DirectPort, KeepsABoundedNumberOfStrangers) {
    // Each stranger has some.
    constexpr rlim_t descriptors = 8 * DirectPort::max_unproved;
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = std::min(limit.rlim_max, std::max(limit.rlim_cur, descriptors));
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur < descriptors) GTEST_SKIP() << "fewer than " << descriptors << " descriptors";
    Port port;
    const control::Secret secret = port.port.admit(direct_job, 4);
    std::vector<std::unique_ptr<Stranger>> callers;
    for (std::size_t i = 0; i < 5; ++i) {
        callers.push_back(std::make_unique<Stranger>(port));
        callers.back()->call();
        ASSERT_TRUE(callers.back()->until([&] { return callers.back()->challenge.has_value(); }));
    }
    callers[1]->say(callers[1]->proof(secret));
    ASSERT_TRUE(callers[1]->until([&] { return callers[1]->welcome.has_value(); }));
    std::vector<std::unique_ptr<Stranger>> more;
    for (std::size_t i = 0; i < DirectPort::max_unproved; ++i) {
        more.push_back(std::make_unique<Stranger>(port));
        more.back()->call();
        ASSERT_TRUE(more.back()->until([&] { return more.back()->challenge.has_value(); }));
    }
    EXPECT_TRUE(callers[0]->until([&] { return callers[0]->lost; }));
    EXPECT_TRUE(callers[4]->until([&] { return callers[4]->lost; }));
    // A caller that has proved its identity stays.
    callers[1]->ask(callers[1]->welcome->token);
    EXPECT_TRUE(callers[1]->until([&] { return callers[1]->answer.has_value(); }));
}

}  // namespace
}  // namespace offpath::proxy
