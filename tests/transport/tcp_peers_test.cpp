// What a TCP transport does with peers that are hostile, broken, slow or many. They speak through bare
// sockets.
#include "harness.h"

#include "transport/tcp/address.h"
#include "transport/tcp/frame.h"
#include "transport/tcp/tcp_transport.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <new>

namespace offpath::transport::test {
namespace {

using tcp::FrameKind;

std::unique_ptr<Transport> make_peer(bool listens = true) {
    std::unique_ptr<Transport> transport;
    std::string problem;
    EXPECT_EQ(make_tcp_transport({"lo", listens}, transport, problem), Status::ok) << problem;
    return transport;
}

std::vector<std::byte> frame(FrameKind kind, std::size_t header, std::uint64_t payload) {
    std::vector<std::byte> bytes(tcp::prefix_bytes + header);
    tcp::encode_prefix({kind, header, payload}, bytes);
    return bytes;
}

class BarePeer {
  public:
    explicit BarePeer(const Transport& listener) {
        std::string problem;
        EXPECT_EQ(tcp::decode(listener.address(), address_, problem), Status::ok) << problem;
        sockaddr_storage where{};
        const socklen_t length = tcp::to_socket_address(address_.ips.front(), address_.port, where);
        socket_ = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&where), length), 0);
    }
    ~BarePeer() { close(socket_); }
    BarePeer(const BarePeer&) = delete;
    BarePeer& operator=(const BarePeer&) = delete;

    void say(std::span<const std::byte> bytes) const {
        EXPECT_EQ(send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(bytes.size()));
    }
    std::vector<std::byte> hello() const {
        auto bytes = frame(FrameKind::hello, tcp::hello_bytes, 0);
        std::copy(address_.id.begin(), address_.id.end(), bytes.begin() + tcp::prefix_bytes);
        offpath::write_little(bytes, tcp::prefix_bytes + 16, static_cast<unsigned>(socket_), 4);
        return bytes;
    }
    // True: the listener has closed this connection.
    bool dropped() const {
        pollfd entry{socket_, POLLIN, 0};
        std::byte bytes[64];
        while (poll(&entry, 1, 0) == 1)
            if (recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT) <= 0) return true;
        return false;
    }

  private:
    tcp::Address address_;
    int socket_ = -1;
};

class TcpPeers : public testing::Test {
  protected:
    void SetUp() override { here->set_handler(&heard); }
    bool wait(const std::function<bool()>& done) { return pump({here.get()}, done); }
    // A peer that follows the protocol gets service.
    void expect_service() {
        const auto friendly = make_peer(false);
        Recorder at_friend;
        friendly->set_handler(&at_friend);
        Endpoint* endpoint = nullptr;
        const std::size_t before = heard.messages.size();
        ASSERT_EQ(friendly->connect(here->address(), &endpoint), Status::ok);
        ASSERT_EQ(friendly->post(*endpoint, Header{1, 0}.view(), {}), Status::ok);
        EXPECT_TRUE(pump(
            {friendly.get(), here.get()}, [&] { return heard.messages.size() == before + 1; }, 5s));
        EXPECT_TRUE(at_friend.lost.empty());
    }
    std::unique_ptr<Transport> here = make_peer();
    Recorder heard;
};

// Each of these inputs ends its own connection and nothing else.
TEST_F(TcpPeers, NonsenseEndsTheConnection) {
    const auto with = [](std::vector<std::byte> bytes, std::size_t at, unsigned value) {
        bytes[at] = static_cast<std::byte>(value);
        return bytes;
    };
    const auto message = frame(FrameKind::message, 16, 0);
    const struct {
        const char* what;
        bool hello;
        std::vector<std::byte> bytes;
    } cases[] = {
        {"a message before the hello", false, message},
        {"a large message before the hello", false, frame(FrameKind::message, 16, 1 << 20)},
        {"a welcome from who connects", false, frame(FrameKind::welcome, 0, 0)},
        {"a hello without its header", false, frame(FrameKind::hello, 0, 0)},
        {"a hello with payload", false, frame(FrameKind::hello, tcp::hello_bytes, 1)},
        {"a hello for nobody", false, frame(FrameKind::hello, tcp::hello_bytes, 0)},
        {"a second hello", true, BarePeer(*here).hello()},
        {"a welcome after the hello", true, frame(FrameKind::welcome, 0, 0)},
        {"another magic", true, with(message, 0, 1)},
        {"kind 0", true, with(message, 2, 0)},
        {"kind 255", true, with(message, 2, 255)},
        {"a header that is too long", true, frame(FrameKind::message, Transport::max_wire_header + 1, 0)},
        {"a header of 255 bytes", true, frame(FrameKind::message, 255, 0)},
        {"something where zero belongs", true, with(message, 7, 1)},
        {"payload beyond all bounds", true, frame(FrameKind::message, 16, UINT64_MAX)},
        {"payload above the limit", true, frame(FrameKind::message, 16, tcp::max_payload_bytes + 1)},
        {"more than is kept for nobody", true, frame(FrameKind::message, 16, std::uint64_t{2} << 30)},
    };
    for (const auto& each : cases) {
        SCOPED_TRACE(each.what);
        const BarePeer peer(*here);
        if (each.hello) peer.say(peer.hello());
        peer.say(each.bytes);
        EXPECT_TRUE(wait([&] { return peer.dropped(); }));
    }
    expect_service();
}

// The frame has a status that no sender sends.
TEST_F(TcpPeers, NonsenseBehindThePayloadEndsTheConnection) {
    std::vector<std::byte> place(10000);
    Counted fetched;
    heard.then = [&](const Incoming& message) {
        fetched.start(here->fetch(message.rendezvous, place.data(), message.bytes, &fetched));
    };
    const BarePeer peer(*here);
    peer.say(peer.hello());
    peer.say(frame(FrameKind::message, 0, place.size()));
    peer.say(place);
    peer.say(make_payload(9, tcp::trailer_bytes));
    EXPECT_TRUE(wait([&] { return peer.dropped() && fetched.done(); }));
    EXPECT_EQ(fetched.status, Status::peer_lost);
    heard.then = nullptr;
    expect_service();
}

// The stream may be cut into pieces anywhere.
TEST_F(TcpPeers, FramesMayComeByteByByte) {
    std::vector<std::byte> place(tcp::inline_bytes + 1);
    Counted fetched;
    heard.then = [&](const Incoming& message) {
        if (message.rendezvous == nullptr) return;
        fetched.start(here->fetch(message.rendezvous, place.data(), message.bytes, &fetched));
    };
    const BarePeer peer(*here);
    std::vector<std::byte> all = peer.hello();
    const auto append = [&](const std::vector<std::byte>& bytes) {
        all.insert(all.end(), bytes.begin(), bytes.end());
    };
    append(frame(FrameKind::message, 16, 5));
    append(make_payload(5, 5));
    append(frame(FrameKind::message, 1, place.size()));
    append(make_payload(6, place.size()));
    append(std::vector<std::byte>(tcp::trailer_bytes));
    append(frame(FrameKind::message, 0, 0));
    for (std::size_t i = 0; i < all.size(); ++i) {
        peer.say(std::span(all).subspan(i, 1));
        here->progress();
    }
    ASSERT_TRUE(wait([&] { return heard.messages.size() == 3 && fetched.done(); }));
    EXPECT_TRUE(holds_pattern(5, heard.messages[0].data.data(), 5));
    EXPECT_EQ(fetched.status, Status::ok);
    EXPECT_TRUE(holds_pattern(6, place.data(), place.size()));
    EXPECT_EQ(heard.messages[2].bytes, 0u);
}

// Wherever the stream is cut off, the operations that wait for its rest end too.
TEST_F(TcpPeers, HalfAFrameAndTheEnd) {
    std::vector<std::byte> place(20000);
    std::deque<Counted> fetched;
    heard.then = [&](const Incoming& message) {
        fetched.emplace_back();
        fetched.back().start(here->fetch(message.rendezvous, place.data(), message.bytes, &fetched.back()));
    };
    for (const std::size_t cut : {1, 15, 16, 20, 9000, 20032}) {
        SCOPED_TRACE(cut);
        fetched.clear();
        {
            const BarePeer peer(*here);
            peer.say(peer.hello());
            std::vector<std::byte> bytes = frame(FrameKind::message, 16, place.size());
            bytes.resize(cut);
            peer.say(bytes);
            EXPECT_TRUE(wait([&] { return cut < 32 || fetched.size() == 1; }));
        }
        EXPECT_TRUE(wait([&] { return cut < 32 || fetched[0].done(); }));
        if (cut >= 32) {
            EXPECT_EQ(fetched[0].status, Status::peer_lost);
        }
    }
    heard.then = nullptr;
    expect_service();
}

// The ranks of a node all connect at once like this, while the device does something else.
TEST_F(TcpPeers, ManyMayConnectAtOnce) {
    constexpr std::size_t count = 200;
    std::vector<std::unique_ptr<Transport>> hosts;
    Recorder at_hosts;
    for (std::size_t i = 0; i < count; ++i) {
        hosts.push_back(make_peer(false));
        hosts.back()->set_handler(&at_hosts);
        Endpoint* endpoint = nullptr;
        ASSERT_EQ(hosts.back()->connect(here->address(), &endpoint), Status::ok);
        ASSERT_EQ(hosts.back()->post(*endpoint, Header{i, 0}.view(), {}), Status::ok);
    }
    const auto everybody = [&] {
        for (auto& host : hosts)
            host->progress();
        here->progress();
        return heard.messages.size() == count || !at_hosts.lost.empty();
    };
    EXPECT_TRUE(wait(everybody));
    EXPECT_EQ(heard.messages.size(), count);
    EXPECT_TRUE(at_hosts.lost.empty());
}

// The process has no descriptor left. Later another part of it releases some.
TEST_F(TcpPeers, DescriptorsMayRunOutForAWhile) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "the sanitizer needs descriptors of its own to look at memory";
#endif
    const auto host = make_peer(false);
    Recorder at_host;
    host->set_handler(&at_host);
    Endpoint* endpoint = nullptr;
    ASSERT_EQ(host->connect(here->address(), &endpoint), Status::ok);
    ASSERT_EQ(host->post(*endpoint, Header{1, 0}.view(), {}), Status::ok);
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit none = before;
    none.rlim_cur = 3;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    pump(
        {here.get(), host.get()}, [] { return false; }, 50ms);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_TRUE(heard.messages.empty());
    EXPECT_TRUE(pump(
        {here.get(), host.get()}, [&] { return heard.messages.size() == 1; }, 5s));
}

// Descriptors that strangers hold are freed for honest peers.
TEST_F(TcpPeers, StrangersGiveWayWhereDescriptorsRunOut) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "the sanitizer needs descriptors of its own to look at memory";
#endif
    std::deque<BarePeer> strangers;
    for (int i = 0; i < 20; ++i)
        strangers.emplace_back(*here);
    pump(
        {here.get()}, [] { return false; }, 20ms);
    const auto host = make_peer(false);
    Endpoint* endpoint = nullptr;
    ASSERT_EQ(host->connect(here->address(), &endpoint), Status::ok);
    ASSERT_EQ(host->post(*endpoint, Header{1, 0}.view(), {}), Status::ok);
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit none = before;
    // The limit leaves the descriptors that are in use, and no others.
    const int next = dup(0);
    close(next);
    none.rlim_cur = static_cast<rlim_t>(next);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    const bool served = pump(
        {here.get(), host.get()}, [&] { return heard.messages.size() == 1; }, 5s);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_TRUE(served);
}

// These peers know the address, but nothing here connects to them. They cannot take all descriptors either.
TEST_F(TcpPeers, WhoIsWantedByNobodyGivesWay) {
    if (!room_for_descriptors(1500)) GTEST_SKIP() << "fewer than 1500 descriptors may be open";
    std::deque<BarePeer> peers;
    for (int i = 0; i < 600; ++i) {
        peers.emplace_back(*here);
        peers.back().say(peers.back().hello());
        here->progress();
    }
    expect_service();
    EXPECT_GE(std::ranges::count_if(peers, [](const BarePeer& peer) { return peer.dropped(); }), 600 - 512);
}

std::size_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    std::size_t all = 0, resident = 0;
    file >> all >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// A peer that announces a large payload and sends nothing costs no memory.
TEST_F(TcpPeers, AnnouncedPayloadTakesNoMemory) {
    const std::size_t before = resident_bytes();
    std::deque<BarePeer> peers;
    for (int i = 0; i < 4; ++i) {
        peers.emplace_back(*here);
        peers.back().say(peers.back().hello());
        peers.back().say(frame(FrameKind::message, 16, std::uint64_t{256} << 20));
        peers.back().say(std::vector<std::byte>(16));
    }
    ASSERT_TRUE(wait([&] { return heard.messages.size() == 4; }));
    EXPECT_LT(resident_bytes(), before + (std::size_t{64} << 20));
    for (auto& message : heard.messages)
        here->discard(message.rendezvous);
}

// A handler that runs out of memory loses that connection. The transport continues.
TEST_F(TcpPeers, AHandlerMayThrow) {
    heard.then = [](const Incoming&) { throw std::bad_alloc(); };
    const BarePeer peer(*here);
    peer.say(peer.hello());
    peer.say(frame(FrameKind::message, 0, 0));
    EXPECT_TRUE(wait([&] { return peer.dropped(); }));
    heard.then = nullptr;
    expect_service();
    // A completion that throws does not keep the others from being called.
    struct Throwing : Completion {
    } throwing;
    throwing.function = [](Completion*, Status) { throw std::bad_alloc(); };
    Endpoint* nowhere = nullptr;
    ASSERT_EQ(here->connect(make_peer(false)->address(), &nowhere), Status::ok);
    const std::vector<std::byte> payload(20000);
    Counted second;
    ASSERT_EQ(here->send(*nowhere, {}, payload.data(), payload.size(), &throwing), Status::in_progress);
    ASSERT_EQ(here->send(*nowhere, {}, payload.data(), payload.size(), &second), Status::in_progress);
    here->disconnect(nowhere);
    EXPECT_THROW(here->progress(), std::bad_alloc);
    EXPECT_EQ(here->arm(), Status::retry);
    EXPECT_TRUE(wait([&] { return second.done(); }));
    EXPECT_EQ(second.status, Status::peer_lost);
    expect_service();
}

// A peer that takes no data for 8 s counts as lost. The sender is woken for this if it sleeps.
TEST(TcpSlow, WhoTakesNothingIsLost) {
    auto a = make_peer(false), b = make_peer();
    Recorder at_a, at_b;
    a->set_handler(&at_a);
    b->set_handler(&at_b);
    Endpoint* to_b = nullptr;
    ASSERT_EQ(a->connect(b->address(), &to_b), Status::ok);
    ASSERT_EQ(a->post(*to_b, Header{1, 0}.view(), {}), Status::ok);
    ASSERT_TRUE(pump({a.get(), b.get()}, [&] { return at_b.messages.size() == 1; }));
    const std::vector<std::byte> payload(std::size_t{64} << 20);
    Counted sent;
    ASSERT_EQ(a->send(*to_b, {}, payload.data(), payload.size(), &sent), Status::in_progress);
    while (!sent.done()) {
        pollfd entry{a->event_fd(), POLLIN, 0};
        if (a->arm() == Status::ok) {
            ASSERT_EQ(poll(&entry, 1, 30'000), 1) << "the sender sleeps on";
        }
        a->progress();
    }
    EXPECT_EQ(sent.status, Status::peer_lost);
    EXPECT_EQ(at_a.lost, std::vector<Endpoint*>{to_b});
}

// A connecting peer has 5 s to say something, and a peer that was connected to has 8 s to answer. This holds
// also if both sides sleep.
TEST(TcpSlow, WhoSaysNothingIsGivenUp) {
    auto a = make_peer(false), b = make_peer();
    Recorder at_a;
    a->set_handler(&at_a);
    const BarePeer stranger(*b);
    tcp::Address address;
    std::string problem;
    ASSERT_EQ(tcp::decode(b->address(), address, problem), Status::ok) << problem;
    sockaddr_storage where{};
    socklen_t length = tcp::to_socket_address(address.ips.front(), 0, where);
    const int mute = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(mute, reinterpret_cast<sockaddr*>(&where), length), 0);
    ASSERT_EQ(listen(mute, 1), 0);
    ASSERT_EQ(getsockname(mute, reinterpret_cast<sockaddr*>(&where), &length), 0);
    address.port = ntohs(reinterpret_cast<const sockaddr_in&>(where).sin_port);
    Endpoint* to_nobody = nullptr;
    const auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(a->connect(tcp::encode(address), &to_nobody), Status::ok);
    auto dropped_after = 0ns, lost_after = 0ns;
    for (;;) {
        const auto passed = std::chrono::steady_clock::now() - start;
        if (dropped_after == 0ns && stranger.dropped()) dropped_after = passed;
        if (lost_after == 0ns && !at_a.lost.empty()) lost_after = passed;
        if (dropped_after > 0ns && lost_after > 0ns) break;
        pollfd entries[2] = {{a->event_fd(), POLLIN, 0}, {b->event_fd(), POLLIN, 0}};
        if (a->arm() == Status::ok && b->arm() == Status::ok) {
            ASSERT_GE(poll(entries, 2, 30'000), 1) << "both sides sleep on";
        }
        a->progress();
        b->progress();
    }
    close(mute);
    EXPECT_EQ(at_a.lost, std::vector<Endpoint*>{to_nobody});
    EXPECT_GT(dropped_after, 4900ms);
    EXPECT_GT(lost_after, 7900ms);
}

}  // namespace
}  // namespace offpath::transport::test
