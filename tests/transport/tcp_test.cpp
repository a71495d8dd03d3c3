// What only the transport over plain TCP does: missing memory, which side connects, strangers.
#include "harness.h"

#include "transport/tcp/address.h"
#include "transport/tcp/tcp_transport.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <vector>

namespace offpath::transport::test {
namespace {

std::unique_ptr<Transport> make_tcp(bool listens = true) {
    std::unique_ptr<Transport> transport;
    std::string problem;
    EXPECT_EQ(make_tcp_transport({"lo", listens}, transport, problem), Status::ok) << problem;
    return transport;
}

// A handler that has large payload written to `place`.
struct Placing : Handler {
    Transport* here = nullptr;
    std::byte* place = nullptr;
    std::size_t small = 0;
    std::vector<std::byte> first_bytes;  // of small messages
    std::deque<Counted> fetched;
    unsigned lost = 0;
    void on_message(const Incoming& message) override {
        if (message.rendezvous == nullptr) {
            ++small;
            if (message.bytes > 0) first_bytes.push_back(message.data[0]);
            return;
        }
        fetched.emplace_back();
        fetched.back().start(here->fetch(message.rendezvous, place, message.bytes, &fetched.back()));
    }
    void on_endpoint_lost(Endpoint&) override { ++lost; }
};

struct Pages {
    static constexpr std::size_t bytes = 1 << 20;
    Pages()
        : data(static_cast<std::byte*>(
              mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
    ~Pages() { munmap(data, bytes); }
    // Not unmapped: another thread could map something there.
    void make_hole(std::size_t at) const { EXPECT_EQ(mprotect(data + at, 4096, PROT_NONE), 0); }
    std::byte* const data;
};

class Tcp : public testing::Test {
  protected:
    void SetUp() override {
        at_b.here = b.get();
        a->set_handler(&at_a);
        b->set_handler(&at_b);
        ASSERT_EQ(a->connect(b->address(), &to_b), Status::ok);
    }
    void move(const std::byte* from, std::byte* to, std::size_t bytes, Status wanted_there,
              Status wanted_here) {
        at_b.place = to;
        at_b.fetched.clear();
        Counted sent;
        sent.start(a->send(*to_b, Header{1, bytes}.view(), from, bytes, &sent));
        ASSERT_TRUE(pump({a.get(), b.get()},
                         [&] { return sent.done() && at_b.fetched.size() == 1 && at_b.fetched[0].done(); }));
        EXPECT_EQ(at_b.fetched[0].status, wanted_there);
        EXPECT_EQ(sent.status, wanted_here);
    }
    Recorder at_a;
    Placing at_b;
    std::unique_ptr<Transport> a = make_tcp(), b = make_tcp();
    Endpoint* to_b = nullptr;
};

// The hole may be in what the socket takes first, in what it takes later, or at the end.
TEST_F(Tcp, MemoryThatIsNotThereCostsItsOwnMessageOnly) {
    ASSERT_TRUE(a->checks_memory());
    const auto payload = make_payload(3, Pages::bytes);
    std::vector<std::byte> got(Pages::bytes);
    for (const std::size_t hole :
         {std::size_t{0}, std::size_t{4096}, Pages::bytes / 2, Pages::bytes - 4096}) {
        SCOPED_TRACE(hole);
        const Pages from, to;
        std::memcpy(from.data, payload.data(), Pages::bytes);
        from.make_hole(hole);
        to.make_hole(hole);
        move(from.data, got.data(), Pages::bytes, Status::access, Status::access);
        move(payload.data(), to.data, Pages::bytes, Status::access, Status::ok);
        move(from.data, to.data, Pages::bytes, Status::access, Status::access);
    }
    move(payload.data(), got.data(), Pages::bytes, Status::ok, Status::ok);
    EXPECT_TRUE(holds_pattern(3, got.data(), got.size())) << "the stream is as it was";
    EXPECT_EQ(at_b.lost, 0u);
}

// The memory disappears while the payload is on its way.
TEST_F(Tcp, MemoryMayVanishOnTheWay) {
    constexpr std::size_t bytes = std::size_t{64} << 20;
    const auto map = [] {
        return static_cast<std::byte*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    };
    std::byte *const from = map(), *const to = map();
    at_b.place = to;
    Counted sent;
    ASSERT_EQ(a->send(*to_b, Header{1, bytes}.view(), from, bytes, &sent), Status::in_progress);
    ASSERT_TRUE(pump({a.get(), b.get()}, [&] { return !at_b.fetched.empty(); }));
    munmap(from, bytes);
    munmap(to, bytes);
    ASSERT_TRUE(pump({a.get(), b.get()}, [&] { return sent.done() && at_b.fetched[0].done(); }));
    EXPECT_EQ(sent.status, Status::access);
    EXPECT_EQ(at_b.fetched[0].status, Status::access);
    ASSERT_EQ(a->post(*to_b, Header{1, 0}.view(), {}), Status::ok);
    EXPECT_TRUE(pump({a.get(), b.get()}, [&] { return at_b.small == 1; }));
}

// There are more messages than one system call takes. They leave together, and the caller may reuse their
// memory at once.
TEST_F(Tcp, HeldMessagesLeaveTogether) {
    std::array<std::byte, 100> payload{};
    const auto post = [&](std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) {
            payload.fill(static_cast<std::byte>(i));
            ASSERT_EQ(a->post(*to_b, Header{1, i}.view(), payload), Status::ok);
            payload.fill(std::byte{0xee});
        }
    };
    post(1);
    ASSERT_TRUE(pump({a.get(), b.get()}, [&] { return at_b.small == 1; }));
    a->hold(*to_b);
    post(50);
    EXPECT_EQ(a->unsent(*to_b), 50u);
    for (int i = 0; i < 200; ++i)
        b->progress();
    EXPECT_EQ(at_b.small, 1u);
    a->let_go(*to_b);
    ASSERT_TRUE(pump({a.get(), b.get()}, [&] { return at_b.small == 51; }));
    for (std::size_t i = 1; i < at_b.first_bytes.size(); ++i)
        EXPECT_EQ(at_b.first_bytes[i], static_cast<std::byte>(i - 1));
    post(1);
    ASSERT_TRUE(pump({a.get(), b.get()}, [&] { return at_b.small == 52; })) << "nothing is held any more";
}

TEST(TcpPassive, SendsOverTheOthersConnections) {
    for (const bool host_first : {true, false}) {
        auto host = make_tcp(false), device = make_tcp();
        Recorder at_host, at_device;
        host->set_handler(&at_host);
        device->set_handler(&at_device);
        Endpoint *to_device[2], *to_host[2];
        const auto connect = [](Transport& from, Transport& to, Endpoint** endpoints) {
            for (int i = 0; i < 2; ++i)
                ASSERT_EQ(from.connect(to.address(), &endpoints[i]), Status::ok);
        };
        if (host_first) {
            connect(*host, *device, to_device);
            pump(
                {host.get(), device.get()}, [] { return false; }, 50ms);
        }
        connect(*device, *host, to_host);
        const auto payload = make_payload(4, 100000);
        Counted sent;
        sent.start(device->send(*to_host[1], Header{4, 0}.view(), payload.data(), payload.size(), &sent));
        ASSERT_EQ(device->post(*to_host[0], Header{5, 0}.view(), {}), Status::ok);
        if (!host_first) connect(*host, *device, to_device);
        ASSERT_TRUE(
            pump({host.get(), device.get()}, [&] { return at_host.messages.size() == 2 && sent.done(); }));
        for (auto& message : at_host.messages)
            if (message.rendezvous != nullptr) host->discard(message.rendezvous);
        // The end of one connection ends that endpoint only, on both sides.
        host->disconnect(to_device[0]);
        ASSERT_TRUE(pump({host.get(), device.get()}, [&] { return !at_device.lost.empty(); }));
        EXPECT_EQ(at_device.lost, std::vector<Endpoint*>{to_host[0]});
        ASSERT_EQ(device->post(*to_host[1], Header{6, 0}.view(), {}), Status::ok);
        EXPECT_TRUE(pump({host.get(), device.get()}, [&] { return at_host.messages.size() == 3; }));
        EXPECT_EQ(device->post(*to_host[0], Header{6, 0}.view(), {}), Status::peer_lost);
    }
}

// One working address among several is enough.
TEST(TcpAddresses, OneThatWorksIsEnough) {
    auto here = make_tcp(false), there = make_tcp();
    Recorder at_here, at_there;
    here->set_handler(&at_here);
    there->set_handler(&at_there);
    tcp::Address address;
    std::string problem;
    ASSERT_EQ(tcp::decode(there->address(), address, problem), Status::ok) << problem;
    tcp::Ip nobody;
    nobody.bytes[0] = std::byte{127};
    nobody.bytes[3] = std::byte{77};
    address.ips.insert(address.ips.begin(), nobody);
    Endpoint* endpoint = nullptr;
    ASSERT_EQ(here->connect(tcp::encode(address), &endpoint), Status::ok);
    ASSERT_EQ(here->post(*endpoint, Header{1, 0}.view(), {}), Status::ok);
    EXPECT_TRUE(pump({here.get(), there.get()}, [&] { return at_there.messages.size() == 1; }));
    // An address with the wrong number gets no answer, and the endpoint is lost.
    address.id[0] ^= std::byte{1};
    ASSERT_EQ(here->connect(tcp::encode(address), &endpoint), Status::ok);
    EXPECT_TRUE(pump({here.get(), there.get()}, [&] { return !at_here.lost.empty(); }));
    EXPECT_EQ(at_here.lost, std::vector<Endpoint*>{endpoint});
    EXPECT_EQ(here->post(*endpoint, Header{1, 0}.view(), {}), Status::peer_lost);
}

TEST(TcpAddresses, MissingDevicesAreNamed) {
    std::unique_ptr<Transport> transport;
    std::string problem;
    EXPECT_EQ(make_tcp_transport({"nope0", true}, transport, problem), Status::unavailable);
    EXPECT_NE(problem.find("nope0"), std::string::npos) << problem;
}

// Strangers connect and say nothing, or nonsense, or send a correct hello with the wrong number.
TEST(TcpStrangers, HarmNobody) {
    if (!room_for_descriptors(1500)) GTEST_SKIP() << "fewer than 1500 descriptors may be open";
    auto a = make_tcp(), b = make_tcp();
    Recorder at_a, at_b;
    a->set_handler(&at_a);
    b->set_handler(&at_b);
    tcp::Address address;
    std::string problem;
    ASSERT_EQ(tcp::decode(b->address(), address, problem), Status::ok) << problem;
    sockaddr_storage where{};
    const socklen_t length = tcp::to_socket_address(address.ips.front(), address.port, where);
    std::vector<int> silent, talking;
    for (int i = 0; i < 700; ++i) {
        const int made = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ASSERT_EQ(connect(made, reinterpret_cast<sockaddr*>(&where), length), 0);
        (i % 7 == 6 ? talking : silent).push_back(made);
        if (i % 7 == 6) {
            const auto words = make_payload(static_cast<std::uint64_t>(i), 300);
            EXPECT_GT(send(made, words.data(), words.size(), MSG_NOSIGNAL), 0);
        }
        b->progress();
    }
    Endpoint* to_b = nullptr;
    ASSERT_EQ(a->connect(b->address(), &to_b), Status::ok);
    ASSERT_EQ(a->post(*to_b, Header{1, 0}.view(), {}), Status::ok);
    EXPECT_TRUE(pump({a.get(), b.get()}, [&] { return at_b.messages.size() == 1; }));
    const auto dropped = [](const std::vector<int>& strangers) {
        int count = 0;
        for (const int stranger : strangers) {
            pollfd entry{stranger, POLLIN, 0};
            count += poll(&entry, 1, 0);
            close(stranger);
        }
        return count;
    };
    EXPECT_GE(dropped(silent), 600 - 512);
    EXPECT_EQ(dropped(talking), 100);
    EXPECT_TRUE(at_b.lost.empty());
    EXPECT_EQ(at_b.messages.size(), 1u);
}

}  // namespace
}  // namespace offpath::transport::test
