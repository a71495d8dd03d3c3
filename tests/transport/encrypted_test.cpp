// The encrypting transport on a network on which somebody reads, changes, repeats, drops and invents
// messages.
#include "forwarding.h"
#include "harness.h"

#include "transport/encrypted/cipher.h"
#include "transport/encrypted/encrypted.h"
#include "transport/encrypted/format.h"
#include "transport/encrypted/replay_window.h"
#include "transport/loopback/loopback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

namespace offpath::transport::test {
namespace {

using Bytes = std::vector<std::byte>;

// What a message is below the encryption, on its way.
struct Wire {
    Bytes header, payload;
    int copies = 1;  // how often it arrives
};

// A transport whose messages somebody can read and change.
class Tapped final : public Forwarding<> {
  public:
    using Forwarding::Forwarding;
    std::function<void(Wire&)> tap;

    Status post(Endpoint& endpoint, std::span<const std::byte> header,
                std::span<const std::byte> payload) override {
        const Wire wire = passed(header, payload);
        Status status = Status::ok;
        for (int i = 0; i < wire.copies && status == Status::ok; ++i)
            status = inner_->post(endpoint, wire.header, wire.payload);
        return status;
    }
    Status send(Endpoint& endpoint, std::span<const std::byte> header, const void* payload, std::size_t bytes,
                Completion* completion) override {
        kept_.push_back(passed(header, {static_cast<const std::byte*>(payload), bytes}));
        const Wire& wire = kept_.back();
        return inner_->send(endpoint, wire.header, wire.payload.data(), wire.payload.size(), completion);
    }

  private:
    Wire passed(std::span<const std::byte> header, std::span<const std::byte> payload) const {
        Wire wire{{header.begin(), header.end()}, {payload.begin(), payload.end()}};
        if (tap) tap(wire);
        return wire;
    }
    std::deque<Wire> kept_;
};

class Encrypted : public testing::Test {
  protected:
    Encrypted() {
        setenv("OFFPATH_LOST_AFTER_S", "1", 1);  // read once for each process
        a = make(&tap_a);
        b = make(&tap_b);
        a->set_handler(&at_a);
        b->set_handler(&at_b);
        EXPECT_EQ(a->connect(b->address(), &to_b), Status::ok);
        EXPECT_EQ(b->connect(a->address(), &to_a), Status::ok);
    }
    std::unique_ptr<Transport> make(Tapped** tapped) {
        auto below = std::make_unique<Tapped>(hub.join());
        *tapped = below.get();
        return make_encrypted_transport(std::move(below));
    }
    void pump_for(std::chrono::milliseconds time) {
        pump(
            {a.get(), b.get()}, [] { return false; }, time);
    }
    bool arrives(std::size_t count) {
        return pump(
            {a.get(), b.get()}, [&] { return at_b.messages.size() == count; }, 5s);
    }

    LoopbackHub hub{LoopbackConfig{}};
    Recorder at_a, at_b;
    Tapped *tap_a = nullptr, *tap_b = nullptr;
    std::unique_ptr<Transport> a, b;
    Endpoint *to_b = nullptr, *to_a = nullptr;
};

// Somebody who knows where an encrypting transport is, and sends it any bytes.
class Raw {
  public:
    Raw(LoopbackHub& hub, const Bytes& encrypting) : transport_(hub.join()) {
        encrypted::Address address;
        std::string problem;
        EXPECT_EQ(encrypted::decode(encrypting, address, problem), Status::ok) << problem;
        transport_->set_handler(&recorder_);
        EXPECT_EQ(transport_->connect(address.below, &there_), Status::ok);
    }
    void say(const Wire& wire) const {
        EXPECT_EQ(transport_->post(*there_, wire.header, wire.payload), Status::ok);
    }

  private:
    Recorder recorder_;
    std::unique_ptr<Transport> transport_;
    Endpoint* there_ = nullptr;
};

bool contains(const Bytes& where, const Bytes& what) {
    return std::ranges::search(where, what).begin() != where.end();
}

TEST_F(Encrypted, NothingOfAMessageCanBeRead) {
    const Bytes header = make_payload(3, 64), small = make_payload(4, 1000), large = make_payload(5, 100000);
    Bytes seen;
    tap_a->tap = [&](const Wire& wire) {
        seen.insert(seen.end(), wire.header.begin(), wire.header.end());
        seen.insert(seen.end(), wire.payload.begin(), wire.payload.end());
    };
    ASSERT_EQ(a->post(*to_b, header, small), Status::ok);
    Counted sent, fetched;
    sent.start(a->send(*to_b, header, large.data(), large.size(), &sent));
    ASSERT_TRUE(arrives(2));
    Bytes got(large.size());
    fetched.start(b->fetch(at_b.messages.back().rendezvous, got.data(), got.size(), &fetched));
    ASSERT_TRUE(pump({a.get(), b.get()}, [&] { return sent.done() && fetched.done(); }));
    EXPECT_EQ(got, large);
    EXPECT_EQ(at_b.messages.front().data, small);
    EXPECT_GE(seen.size(), header.size() * 2 + small.size() + large.size());
    for (const Bytes& secret : {header, small, large})
        for (std::size_t at = 0; at + 8 <= std::min<std::size_t>(secret.size(), 1000); at += 8)
            EXPECT_FALSE(contains(seen, Bytes(secret.begin() + static_cast<std::ptrdiff_t>(at),
                                              secret.begin() + static_cast<std::ptrdiff_t>(at) + 8)));
}

TEST_F(Encrypted, EqualMessagesLookDifferent) {
    std::vector<Wire> seen;
    tap_a->tap = [&](const Wire& wire) { seen.push_back(wire); };
    for (int i = 0; i < 2; ++i)
        ASSERT_EQ(a->post(*to_b, make_payload(1, 32), make_payload(2, 32)), Status::ok);
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_NE(seen[0].payload, seen[1].payload);
    EXPECT_FALSE(std::equal(seen[0].header.begin() + encrypted::clear_bytes, seen[0].header.end(),
                            seen[1].header.begin() + encrypted::clear_bytes));
}

TEST_F(Encrypted, NoChangedMessageIsAccepted) {
    const Bytes header = make_payload(3, 40), payload = make_payload(4, 30);
    std::size_t length = 0;
    tap_a->tap = [&](const Wire& wire) { length = wire.header.size(); };
    ASSERT_EQ(a->post(*to_b, header, payload), Status::ok);
    ASSERT_TRUE(arrives(1));
    ASSERT_EQ(length, header.size() + Transport::max_wire_header - Transport::max_header);
    for (std::size_t at = 0; at < length; ++at) {
        tap_a->tap = [&](Wire& wire) { wire.header[at] ^= std::byte{0x10}; };
        ASSERT_EQ(a->post(*to_b, header, payload), Status::ok);
        tap_a->tap = [](Wire& wire) { wire.payload.pop_back(); };
        ASSERT_EQ(a->post(*to_b, header, payload), Status::ok);
        tap_a->tap = [](Wire& wire) { wire.header.pop_back(); };
        ASSERT_EQ(a->post(*to_b, header, payload), Status::ok);
        b->progress();
    }
    tap_a->tap = nullptr;
    pump_for(50ms);
    EXPECT_EQ(at_b.messages.size(), 1u);
}

// Somebody who waits for a message that was changed learns that it will not come.
TEST_F(Encrypted, ALostMessageLosesThePeer) {
    ASSERT_EQ(a->post(*to_b, make_payload(1, 8), {}), Status::ok);
    ASSERT_TRUE(arrives(1));
    tap_a->tap = [](Wire& wire) { wire.header.back() ^= std::byte{1}; };
    ASSERT_EQ(a->post(*to_b, make_payload(2, 8), {}), Status::ok);
    b->progress();
    tap_a->tap = nullptr;
    ASSERT_EQ(a->post(*to_b, make_payload(3, 8), {}), Status::ok);
    ASSERT_TRUE(pump(
        {a.get(), b.get()}, [&] { return !at_b.lost.empty(); }, 10s));
    EXPECT_EQ(at_b.messages.size(), 2u);
    EXPECT_EQ(at_b.lost, std::vector<Endpoint*>{to_a});
    EXPECT_EQ(b->post(*to_a, make_payload(1, 8), {}), Status::peer_lost);
}

// Nothing that was changed arrives. Only the numbers of later messages show that one is missing.
TEST_F(Encrypted, ADroppedMessageLosesThePeer) {
    tap_a->tap = [](Wire& wire) { wire.copies = 0; };
    ASSERT_EQ(a->post(*to_b, make_payload(1, 8), {}), Status::ok);
    tap_a->tap = nullptr;
    ASSERT_EQ(a->post(*to_b, make_payload(2, 8), {}), Status::ok);
    ASSERT_TRUE(arrives(1));
    ASSERT_TRUE(pump(
        {a.get(), b.get()}, [&] { return !at_b.lost.empty(); }, 10s));
    EXPECT_EQ(at_b.lost, std::vector<Endpoint*>{to_a});
}

// A message that is late, but comes, does no harm. Nor does one that was dropped on a connection that the
// peer has given up since.
TEST_F(Encrypted, LateMessagesAndOldConnectionsHarmNobody) {
    Wire late;
    tap_a->tap = [&](Wire& wire) {
        late = wire;
        wire.copies = 0;
    };
    ASSERT_EQ(a->post(*to_b, make_payload(1, 8), {}), Status::ok);
    tap_a->tap = nullptr;
    ASSERT_EQ(a->post(*to_b, make_payload(2, 8), {}), Status::ok);
    pump_for(200ms);
    tap_a->tap = [&](Wire& wire) { wire = late; };
    ASSERT_EQ(a->post(*to_b, make_payload(3, 8), {}), Status::ok);  // the late one in its place
    tap_a->tap = nullptr;
    ASSERT_EQ(a->post(*to_b, make_payload(4, 8), {}), Status::ok);  // leaves a gap
    ASSERT_TRUE(arrives(3));
    a->disconnect(to_b);
    ASSERT_EQ(a->connect(b->address(), &to_b), Status::ok);
    ASSERT_EQ(a->post(*to_b, make_payload(5, 8), {}), Status::ok);
    ASSERT_TRUE(arrives(4));
    pump_for(2000ms);
    EXPECT_TRUE(at_b.lost.empty());
    ASSERT_EQ(a->post(*to_b, make_payload(6, 8), {}), Status::ok);
    EXPECT_TRUE(arrives(5));
}

TEST_F(Encrypted, APeerThatDoesNotAnswerIsLost) {
    tap_a->tap = [](Wire& wire) { wire.header.back() ^= std::byte{1}; };
    ASSERT_EQ(a->post(*to_b, make_payload(2, 8), {}), Status::ok);
    tap_a->tap = nullptr;
    ASSERT_EQ(a->post(*to_b, make_payload(3, 8), {}), Status::ok);
    tap_a->tap = [](Wire& wire) { wire.copies = 0; };
    ASSERT_TRUE(pump(
        {a.get(), b.get()}, [&] { return !at_b.lost.empty(); }, 10s));
    EXPECT_EQ(at_b.messages.size(), 1u);
}

// Invented and repeated messages are dropped, and the connection goes on.
TEST_F(Encrypted, InventedMessagesHarmNobody) {
    std::vector<Wire> seen;
    tap_a->tap = [&](Wire& wire) {
        seen.push_back(wire);
        wire.copies = 2;
    };
    ASSERT_EQ(a->post(*to_b, make_payload(1, 8), make_payload(1, 8)), Status::ok);
    ASSERT_TRUE(arrives(1));
    const Raw stranger(hub, b->address());
    std::mt19937 random(7);
    for (int i = 0; i < 200; ++i) {
        Wire invented = seen.front();
        for (int changes = 0; changes < 3; ++changes)
            invented.header[random() % invented.header.size()] ^= static_cast<std::byte>(1 + random() % 255);
        stranger.say(invented);
        stranger.say(seen.front());
        b->progress();
    }
    tap_a->tap = nullptr;
    pump_for(1500ms);  // longer than the time after which a peer is lost
    EXPECT_EQ(at_b.messages.size(), 1u);
    EXPECT_TRUE(at_b.lost.empty());
    ASSERT_EQ(a->post(*to_b, make_payload(2, 8), {}), Status::ok);
    EXPECT_TRUE(arrives(2));
}

// A peer without an endpoint to this side could not answer a question about a message that it has never sent.
TEST_F(Encrypted, AForgedMessageDoesNotEndAOneWayConnection) {
    Wire recorded;
    tap_a->tap = [&](const Wire& wire) { recorded = wire; };
    ASSERT_EQ(a->post(*to_b, make_payload(1, 8), make_payload(1, 8)), Status::ok);
    ASSERT_TRUE(arrives(1));
    a->disconnect(to_b);
    const Raw stranger(hub, b->address());
    for (std::size_t at = 0; at < recorded.header.size(); ++at) {
        Wire forged = recorded;
        forged.header[at] ^= std::byte{1};
        stranger.say(forged);
        stranger.say(recorded);
        b->progress();
    }
    pump_for(1500ms);  // longer than the time after which a peer is lost
    EXPECT_TRUE(at_b.lost.empty());
    ASSERT_EQ(b->post(*to_a, make_payload(2, 8), {}), Status::ok);
    EXPECT_TRUE(pump({a.get(), b.get()}, [&] { return at_a.messages.size() == 1; }));
}

// The genuine message comes after one that has its header and another payload.
TEST_F(Encrypted, AForgedPayloadTakesNoNumber) {
    const Raw stranger(hub, b->address());
    tap_a->tap = [&](const Wire& wire) {
        Wire forged = wire;
        forged.payload.front() ^= std::byte{1};
        stranger.say(forged);
        b->progress();
    };
    ASSERT_EQ(a->post(*to_b, make_payload(1, 8), make_payload(1, 8)), Status::ok);
    ASSERT_TRUE(arrives(1));
    EXPECT_EQ(at_b.messages.front().data, make_payload(1, 8));
    pump_for(50ms);
    EXPECT_TRUE(at_b.lost.empty());
}

// Public keys are seen on the network. Only an address admits.
TEST_F(Encrypted, AStrangerThatKnowsTheKeyAloneIsRefused) {
    const Bytes whole = b->address();
    encrypted::Address address;
    std::string problem;
    ASSERT_EQ(encrypted::decode(whole, address, problem), Status::ok) << problem;
    EXPECT_NE(address.admission, encrypted::Admission{});
    address.admission.front() ^= std::byte{1};
    Tapped* tapped = nullptr;
    const auto stranger = make(&tapped);
    Endpoint* there = nullptr;
    ASSERT_EQ(stranger->connect(encrypted::encode(address), &there), Status::ok);
    Bytes seen;
    tap_a->tap = [&](const Wire& wire) { seen = wire.header; };
    ASSERT_EQ(stranger->post(*there, make_payload(1, 8), make_payload(1, 8)), Status::ok);
    ASSERT_EQ(a->post(*to_b, make_payload(2, 8), {}), Status::ok);
    ASSERT_TRUE(arrives(1));
    EXPECT_EQ(at_b.messages.front().header, make_payload(2, 8));
    const Bytes admission(address.admission.begin() + 8, address.admission.begin() + 16);
    EXPECT_FALSE(contains(seen, admission));
}

TEST_F(Encrypted, AChangedPayloadEndsTheConnection) {
    const Bytes large = make_payload(5, 100000);
    tap_a->tap = [](Wire& wire) {
        if (!wire.payload.empty()) wire.payload[50000] ^= std::byte{1};
    };
    Counted sent, fetched;
    sent.start(a->send(*to_b, make_payload(1, 8), large.data(), large.size(), &sent));
    ASSERT_TRUE(arrives(1));
    Bytes got(large.size());
    fetched.start(b->fetch(at_b.messages.front().rendezvous, got.data(), got.size(), &fetched));
    ASSERT_TRUE(pump({a.get(), b.get()}, [&] { return fetched.done() && !at_b.lost.empty(); }));
    EXPECT_EQ(fetched.status, Status::peer_lost);

    at_b.lost.clear();
    ASSERT_EQ(b->connect(a->address(), &to_a), Status::ok);
    tap_a->tap = [](Wire& wire) {
        if (!wire.payload.empty()) wire.payload.front() ^= std::byte{1};
    };
    ASSERT_EQ(a->post(*to_b, make_payload(1, 8), make_payload(1, 100)), Status::ok);
    ASSERT_EQ(a->post(*to_b, make_payload(2, 8), {}), Status::ok);  // shows that one is missing
    ASSERT_TRUE(pump(
        {a.get(), b.get()}, [&] { return !at_b.lost.empty(); }, 10s));
    EXPECT_EQ(at_b.messages.size(), 2u);
}

// A peer that is met again begins anew; what was recorded of it before is still refused.
TEST_F(Encrypted, EachConnectionHasAStreamOfItsOwn) {
    std::vector<Wire> seen;
    tap_a->tap = [&](const Wire& wire) { seen.push_back(wire); };
    for (std::uint64_t i = 1; i <= 20; ++i) {
        ASSERT_EQ(a->post(*to_b, make_payload(i, 8), {}), Status::ok);
        ASSERT_TRUE(arrives(i));
        a->disconnect(to_b);
        ASSERT_EQ(a->connect(b->address(), &to_b), Status::ok);
    }
    const std::vector<Wire> recorded = std::exchange(seen, {});
    for (const Wire& each : recorded) {
        tap_a->tap = [&](Wire& wire) { wire = each; };
        ASSERT_EQ(a->post(*to_b, make_payload(1, 8), {}), Status::ok);
    }
    pump_for(50ms);
    EXPECT_EQ(at_b.messages.size(), 20u);
}

TEST_F(Encrypted, AllOrNobodyEncrypts) {
    const auto plain = hub.join();
    Endpoint* endpoint = nullptr;
    EXPECT_EQ(a->connect(plain->address(), &endpoint), Status::protocol);
    EXPECT_TRUE(is_error(plain->connect(a->address(), &endpoint)));
    EXPECT_EQ(endpoint, nullptr);
    EXPECT_TRUE(is_encrypted_address(a->address()));
    EXPECT_FALSE(is_encrypted_address(plain->address()));
}

// One of many peers to which this side has not connected sends on after that.
TEST_F(Encrypted, ServesManyStrangers) {
    Tapped* tapped = nullptr;
    const auto early = make(&tapped);
    Recorder at_early;
    early->set_handler(&at_early);
    Endpoint* from_early = nullptr;
    ASSERT_EQ(early->connect(b->address(), &from_early), Status::ok);
    for (std::size_t i = 1; i <= 3; ++i) {
        ASSERT_EQ(early->post(*from_early, make_payload(i, 8), {}), Status::ok);
        ASSERT_TRUE(arrives(i));
    }
    for (std::size_t i = 4; i <= 1000; ++i) {
        const auto one = make(&tapped);
        Endpoint* there = nullptr;
        ASSERT_EQ(one->connect(b->address(), &there), Status::ok);
        ASSERT_EQ(one->post(*there, make_payload(i, 8), make_payload(i, 8)), Status::ok);
        ASSERT_TRUE(arrives(i));
    }
    Endpoint* to_early = nullptr;
    ASSERT_EQ(b->connect(early->address(), &to_early), Status::ok);
    ASSERT_EQ(early->post(*from_early, make_payload(1, 8), {}), Status::ok);
    ASSERT_TRUE(arrives(1001));
    pump(
        {early.get(), b.get()}, [] { return false; }, 2000ms);
    EXPECT_TRUE(at_b.lost.empty());
    ASSERT_EQ(a->post(*to_b, make_payload(1, 8), {}), Status::ok);
    EXPECT_TRUE(arrives(1002));
}

// More peers come than this side keeps keys for. What was recorded of one before stays refused, and that one
// sends on.
TEST_F(Encrypted, RecordedMessagesStayRefusedAfterManyPeers) {
    Tapped* tapped = nullptr;
    const auto early = make(&tapped);
    Recorder at_early;
    early->set_handler(&at_early);
    Endpoint* from_early = nullptr;
    ASSERT_EQ(early->connect(b->address(), &from_early), Status::ok);
    Wire recorded;
    tapped->tap = [&](const Wire& wire) { recorded = wire; };
    ASSERT_EQ(early->post(*from_early, make_payload(1, 8), make_payload(1, 8)), Status::ok);
    ASSERT_TRUE(arrives(1));
    tapped->tap = nullptr;
    for (std::size_t i = 2; i <= 8194; ++i) {
        Tapped* own = nullptr;
        const auto one = make(&own);
        Endpoint* there = nullptr;
        ASSERT_EQ(one->connect(b->address(), &there), Status::ok);
        ASSERT_EQ(one->post(*there, make_payload(i, 8), {}), Status::ok);
        b->progress();
        ASSERT_EQ(at_b.messages.size(), i);
    }
    Raw(hub, b->address()).say(recorded);
    ASSERT_EQ(early->post(*from_early, make_payload(2, 8), {}), Status::ok);
    ASSERT_TRUE(arrives(8195));
    EXPECT_EQ(at_b.messages.back().header, make_payload(2, 8));
    pump_for(50ms);
    EXPECT_EQ(at_b.messages.size(), 8195u);
}

// A doubt does not outlive the connections of its peer.
TEST_F(Encrypted, DoubtsEndWithTheirConnections) {
    tap_a->tap = [](Wire& wire) { wire.header.back() ^= std::byte{1}; };
    ASSERT_EQ(a->post(*to_b, make_payload(1, 8), {}), Status::ok);
    tap_b->tap = [](Wire& wire) { wire.copies = 0; };  // the question does not come
    b->progress();
    tap_b->tap = nullptr;
    b->disconnect(to_a);
    tap_a->tap = nullptr;
    a->disconnect(to_b);
    ASSERT_EQ(a->connect(b->address(), &to_b), Status::ok);
    ASSERT_EQ(b->connect(a->address(), &to_a), Status::ok);
    ASSERT_EQ(a->post(*to_b, make_payload(2, 8), {}), Status::ok);
    ASSERT_TRUE(arrives(1));
    pump_for(1500ms);
    EXPECT_TRUE(at_b.lost.empty());
}

TEST(EncryptionKeys, AgreeAndNoticeChanges) {
    using namespace encrypted;
    const KeyPair mine, yours;
    SharedKey one, other;
    ASSERT_TRUE(mine.agree(yours.public_key(), one));
    ASSERT_TRUE(yours.agree(mine.public_key(), other));
    EXPECT_EQ(one, other);
    EXPECT_FALSE(mine.agree(PublicKey{}, other)) << "a key that leads to a known result";
    for (const Cipher cipher : {Cipher::chacha20_poly1305, Cipher::aes256_gcm}) {
        if ((ciphers_here() & static_cast<std::uint8_t>(cipher)) == 0) continue;
        SCOPED_TRACE(name_of(cipher));
        const Admission& admission = yours.admission();
        const CipherKey here(one, admission, cipher, Use::payload, mine.public_key(), yours.public_key());
        const CipherKey there(one, admission, cipher, Use::payload, mine.public_key(), yours.public_key());
        const CipherKey otherwise(one, admission, cipher, Use::payload, yours.public_key(),
                                  mine.public_key());
        const CipherKey header(one, admission, cipher, Use::header, mine.public_key(), yours.public_key());
        const CipherKey stranger(one, mine.admission(), cipher, Use::payload, mine.public_key(),
                                 yours.public_key());
        for (std::size_t bytes : {0ul, 1ul, 15ul, 16ul, 17ul, 4096ul, 100001ul}) {
            const Bytes plain = make_payload(bytes, bytes), covered = make_payload(1, 72);
            Bytes secret(bytes), again(bytes);
            Tag tag;
            here.encrypt({1, 2}, plain, secret.data(), covered, tag);
            EXPECT_TRUE(there.decrypt({1, 2}, secret, again.data(), covered, tag));
            EXPECT_EQ(again, plain);
            EXPECT_FALSE(there.decrypt({1, 3}, secret, again.data(), covered, tag));
            EXPECT_FALSE(there.decrypt({2, 2}, secret, again.data(), covered, tag));
            EXPECT_FALSE(otherwise.decrypt({1, 2}, secret, again.data(), covered, tag));
            EXPECT_FALSE(header.decrypt({1, 2}, secret, again.data(), covered, tag));
            EXPECT_FALSE(stranger.decrypt({1, 2}, secret, again.data(), covered, tag));
            EXPECT_FALSE(there.decrypt({1, 2}, secret, again.data(), std::span(covered).first(71), tag));
            again = secret;
            EXPECT_TRUE(there.decrypt({1, 2}, again, again.data(), covered, tag)) << "in place";
            EXPECT_EQ(again, plain);
        }
    }
}

TEST(ReplayWindows, AcceptEachNumberOnce) {
    encrypted::ReplayWindow window;
    std::vector<std::uint64_t> numbers(50000);
    std::mt19937 random(1);
    for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = i;
    // Messages overtake each other by less than the window.
    for (std::size_t at = 0; at < numbers.size(); at += 4000)
        std::shuffle(numbers.begin() + static_cast<std::ptrdiff_t>(at),
                     numbers.begin() + static_cast<std::ptrdiff_t>(std::min(at + 4000, numbers.size())),
                     random);
    for (const std::uint64_t number : numbers) {
        ASSERT_TRUE(window.take(number));
        ASSERT_FALSE(window.take(number));
        ASSERT_FALSE(window.take(numbers.front()));
    }
    EXPECT_TRUE(window.has_all(numbers.size()));
    EXPECT_FALSE(window.has_all(numbers.size() + 1));
}

TEST(ReplayWindows, RefuseTheSameWhenTheyHaveGivenTheirMemoryBack) {
    using encrypted::ReplayWindow;
    ReplayWindow complete;
    for (const std::uint64_t number : {0, 2, 1})
        EXPECT_TRUE(complete.take(number));
    complete.shrink();
    EXPECT_TRUE(complete.has_all(3));
    EXPECT_FALSE(complete.take(2));
    EXPECT_TRUE(complete.take(4));
    EXPECT_FALSE(complete.take(4));
    EXPECT_TRUE(complete.take(3));
    EXPECT_TRUE(complete.has_all(5));
    ReplayWindow gaps;
    for (const std::uint64_t number : {0, 5, 9})
        EXPECT_TRUE(gaps.take(number));
    gaps.shrink();
    EXPECT_FALSE(gaps.take(9));
    EXPECT_FALSE(gaps.take(4)) << "too old now";
    EXPECT_FALSE(gaps.has_all(10));
    EXPECT_TRUE(gaps.take(10));
}

TEST(ReplayWindows, KnowWhatIsMissing) {
    using encrypted::ReplayWindow;
    ReplayWindow window;
    EXPECT_TRUE(window.take(0));
    EXPECT_TRUE(window.take(2));
    EXPECT_FALSE(window.has_all(3));
    EXPECT_TRUE(window.take(1));
    EXPECT_TRUE(window.has_all(3));
    EXPECT_TRUE(window.take(ReplayWindow::span + 10));
    EXPECT_FALSE(window.has_all(4)) << "3 to 10 are too old to come";
    EXPECT_FALSE(window.take(10));
    EXPECT_TRUE(window.take(11));
    EXPECT_TRUE(window.take(10 * ReplayWindow::span));
    EXPECT_FALSE(window.take(ReplayWindow::span + 11));
    EXPECT_TRUE(window.take(9 * ReplayWindow::span + 1));
}

}  // namespace
}  // namespace offpath::transport::test
