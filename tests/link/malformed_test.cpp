// Input that the two ends of a link must survive: foreign tokens, garbage, and garbage with the right token.
#include "harness.h"
#include "link/wire.h"

#include <algorithm>
#include <random>

namespace offpath::link::test {
namespace {

using memory::StagingDirection;

// A link over loopback, and a stranger that can reach both of its ends.
class Malformed : public testing::Test {
  protected:
    Malformed()
        : hub_(make_hub()),
          joined_({"hub", [this] { return std::pair(hub_.join(), hub_.join()); }}),
          stranger_(hub_.join()) {
        EXPECT_EQ(stranger_->connect(joined_.links->address(), &device_), Status::ok);
        EXPECT_EQ(stranger_->connect(joined_.host->address(), &host_), Status::ok);
    }
    void to_device(const Header& header, std::span<const std::byte> payload) {
        EXPECT_EQ(stranger_->post(*device_, encode_header(header), payload), Status::ok);
    }
    void to_host(const Header& header, std::span<const std::byte> payload) {
        EXPECT_EQ(stranger_->post(*host_, encode_header(header), payload), Status::ok);
    }
    Header header(Kind kind, std::uint64_t token, std::size_t bytes) {
        Header made;
        made.kind = kind;
        made.token = token;
        made.bytes = static_cast<std::uint32_t>(bytes);
        return made;
    }
    Status settle(std::string& why) {
        joined_.until([] { return false; }, 20ms);
        return joined_.link->health(why);
    }
    // Waits for the link to break.
    Status broken(std::string& why) {
        joined_.until([&] { return joined_.link->health(why) != Status::ok; });
        return joined_.link->health(why);
    }
    bool works() {
        const auto from = pattern_bytes(9, 100000);
        std::vector<std::byte> to(from.size());
        return joined_.staged(StagingDirection::to_device, from.data(), to.data(), to.size()) == Status::ok &&
               to == from;
    }

    transport::LoopbackHub& hub_;
    Joined joined_;
    std::unique_ptr<transport::Transport> stranger_;
    transport::Endpoint *device_ = nullptr, *host_ = nullptr;
    std::string why_;
};

TEST_F(Malformed, ForeignTokensAreDroppedAndCounted) {
    const auto bytes = pattern_bytes(1, 48);
    for (Kind kind :
         {Kind::commands, Kind::completions, Kind::fetch, Kind::data, Kind::store, Kind::stored}) {
        Header made = header(kind, Joined::token + 1, 48);
        made.count = kind == Kind::completions ? 2 : kind == Kind::fetch ? 3 : kind == Kind::stored ? 6 : 0;
        to_device(made, bytes);
        to_host(made, bytes);
    }
    EXPECT_EQ(settle(why_), Status::ok);
    EXPECT_EQ(joined_.links->counters().foreign, 6u);
    EXPECT_TRUE(joined_.until([&] { return joined_.host->counters().foreign == 6; }));
    EXPECT_TRUE(works());
}

TEST_F(Malformed, RandomBytesHarmNobody) {
    std::mt19937_64 random(3);
    for (int i = 0; i < 20000; ++i) {
        std::vector<std::byte> head(random() % 60), body(random() % 200);
        if (random() % 2 == 0) {
            // The message is correct except for its token.
            Header made = header(static_cast<Kind>(random() % 8), 77, body.size());
            made.count = static_cast<std::uint32_t>(random() % 10);
            const HeaderBytes encoded = encode_header(made);
            head.assign(encoded.begin(), encoded.end());
            head[random() % head.size()] = static_cast<std::byte>(random());
        } else {
            std::ranges::generate(head, [&] { return static_cast<std::byte>(random()); });
        }
        ASSERT_EQ(stranger_->post(*device_, head, body), Status::ok);
        ASSERT_EQ(stranger_->post(*host_, head, body), Status::ok);
        if (i % 100 == 0) joined_.step();
    }
    EXPECT_EQ(settle(why_), Status::ok);
    EXPECT_TRUE(joined_.until([&] {
        return joined_.links->counters().foreign == 20000 && joined_.host->counters().foreign == 20000;
    }));
    EXPECT_TRUE(works());
}

// The token is right, so the session ends with a reason.
TEST_F(Malformed, CommandsTwiceBreakTheLink) {
    const auto bytes = pattern_bytes(1, 16);
    for (int i = 0; i < 2; ++i)
        to_device(header(Kind::commands, Joined::token, 16), bytes);
    EXPECT_EQ(broken(why_), Status::protocol);
    EXPECT_NE(why_.find("twice"), std::string::npos) << why_;
}

TEST_F(Malformed, TooManyCommandsBreakTheLink) {
    const std::vector<std::byte> bytes(8 << 10);
    for (std::uint64_t number = 0; number < 129; ++number) {
        Header made = header(Kind::commands, Joined::token, bytes.size());
        made.position = number;
        to_device(made, bytes);
    }
    EXPECT_EQ(broken(why_), Status::protocol);
    EXPECT_NE(why_.find("room"), std::string::npos) << why_;
}

TEST_F(Malformed, RecordsThatAreNoneBreakTheChannel) {
    std::vector<std::byte> bytes(64);
    bytes[0] = std::byte{65};  // longer than the batch
    to_device(header(Kind::commands, Joined::token, bytes.size()), bytes);
    EXPECT_EQ(settle(why_), Status::ok);
    std::span<const std::byte> record;
    EXPECT_EQ(joined_.proxy->next(record), control::NextRecord::broken);
}

TEST_F(Malformed, AnswersThatNobodyAskedForBreakTheLink) {
    std::vector<std::byte> bytes(8);
    encode_item(StoredItem{0, Status::ok}, bytes);
    Header made = header(Kind::stored, Joined::token, 8);
    made.count = 1;
    to_device(made, bytes);
    EXPECT_EQ(broken(why_), Status::protocol);
}

TEST_F(Malformed, DataForAnotherPlaceBreaksTheLink) {
    std::vector<std::byte> from(100), to(100);
    Arrival arrival;
    ASSERT_EQ(joined_.transfers->start(StagingDirection::to_device, address_of(from.data()), to.data(), 100,
                                       &arrival),
              Status::in_progress);
    const std::vector<std::byte> lie(101);
    to_device(header(Kind::data, Joined::token, lie.size()), lie);  // before the request is even on its way
    EXPECT_EQ(broken(why_), Status::protocol);
    joined_.transfers->abandon(Status::protocol);
    EXPECT_EQ(arrival.calls, 1);
}

TEST_F(Malformed, ShortDataIsNotTaken) {
    std::vector<std::byte> to(100);
    Arrival arrival;
    // The host cannot read this memory, so the true answer is an error. The false answer comes first.
    ASSERT_EQ(joined_.transfers->start(StagingDirection::to_device, 64, to.data(), 100, &arrival),
              Status::in_progress);
    joined_.transfers->progress();
    const std::vector<std::byte> lie(99, std::byte{1});
    to_device(header(Kind::data, Joined::token, lie.size()), lie);
    EXPECT_TRUE(joined_.until([&] { return joined_.link->lost() || arrival.calls == 1; }));
    if (arrival.calls == 0) {
        EXPECT_EQ(joined_.link->health(why_), Status::protocol);
        joined_.transfers->abandon(Status::protocol);
    }
    EXPECT_NE(arrival.status, Status::ok);
    EXPECT_EQ(to[0], std::byte{0});
}

TEST_F(Malformed, ADeviceThatLiesLosesItsHost) {
    std::vector<std::byte> bytes(24);
    encode_item(CompletionItem{1u << 30, 1, 0, 0, 0}, bytes);
    Header made = header(Kind::completions, Joined::token, 24);
    made.count = 1;
    to_host(made, bytes);
    std::string why;
    EXPECT_TRUE(joined_.until([&] { return joined_.client->lost(why); }));
    EXPECT_NE(why.find("completions"), std::string::npos) << why;
}

// The token and the kinds are right, and the contents are random.
TEST_F(Malformed, RandomContentsUnderTheRightTokenEndTheSessionOnly) {
    std::mt19937_64 random(5);
    for (int i = 0; i < 3000; ++i) {
        std::vector<std::byte> body(8 * (1 + random() % 30));
        std::ranges::generate(body, [&] { return static_cast<std::byte>(random()); });
        Header made = header(static_cast<Kind>(1 + random() % 6), Joined::token, body.size());
        made.position = random() % 3 == 0 ? random() : random() % 4;
        if (made.kind == Kind::stored) made.count = static_cast<std::uint32_t>(body.size() / 8);
        if (made.kind == Kind::data || made.kind == Kind::store)
            made.id = static_cast<std::uint32_t>(random() % 4);
        to_device(made, body);
        // The host gets only kinds that write nothing, because a device may write into its client's memory.
        if (made.kind != Kind::store) to_host(made, body);
        joined_.step();
        std::span<const std::byte> record;
        (void)joined_.proxy->next(record);
    }
    EXPECT_NE(settle(why_), Status::ok);
    std::string why;
    EXPECT_TRUE(joined_.until([&] { return joined_.client->lost(why); }));
}

}  // namespace
}  // namespace offpath::link::test
