#include "control/messages.h"

#include "samples.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace offpath::control {
namespace {

TEST(Messages, SurviveTheWire) {
    for (const Message& message : samples::messages()) {
        const auto bytes = encode_message(message);
        Message decoded;
        std::string problem;
        ASSERT_EQ(decode_message(bytes, decoded, problem), Status::ok) << problem;
        EXPECT_EQ(decoded, message);
    }
}

// The kinds are part of the protocol: the place in the variant must not move within a version.
TEST(Messages, KeepTheirKinds) {
    std::uint16_t expected = 1;
    for (const Message& message : samples::messages()) {
        const auto bytes = encode_message(message);
        std::uint16_t kind;
        std::memcpy(&kind, bytes.data() + 6, sizeof kind);
        EXPECT_EQ(kind, expected++);
    }
    EXPECT_EQ(expected, std::variant_size_v<Message> + 1) << "a message has no sample";
}

TEST(Messages, RefuseEveryShorterAndLongerForm) {
    for (const Message& message : samples::messages()) {
        auto bytes = encode_message(message);
        for (std::size_t length = 0; length < bytes.size(); ++length) {
            Message decoded = Goodbye{};
            std::string problem;
            EXPECT_EQ(decode_message(std::span(bytes).first(length), decoded, problem), Status::protocol);
            EXPECT_EQ(decoded, Message(Goodbye{}));
            EXPECT_FALSE(problem.empty());
        }
        bytes.push_back(std::byte{0});
        Message decoded;
        std::string problem;
        EXPECT_EQ(decode_message(bytes, decoded, problem), Status::protocol);
    }
}

// A device with many network interfaces has a long description; that must not keep anybody out.
TEST(Messages, CutLongTextsForPeople) {
    Welcome welcome;
    welcome.fabric = std::string(100000, 'f');
    welcome.address.resize(max_address_bytes);
    Message decoded;
    std::string problem;
    ASSERT_EQ(decode_message(encode_message(welcome), decoded, problem), Status::ok) << problem;
    EXPECT_EQ(std::get<Welcome>(decoded).fabric, std::string(512, 'f'));
    EXPECT_EQ(std::get<Welcome>(decoded).address.size(), max_address_bytes);
    ASSERT_EQ(
        decode_message(encode_message(Refusal{Status::memory, std::string(1000, 'r')}), decoded, problem),
        Status::ok);
}

TEST(Messages, TellVersionsApart) {
    auto bytes = encode_message(Hello{});
    bytes[4] = std::byte{99};
    Message decoded;
    std::string problem;
    EXPECT_EQ(decode_message(bytes, decoded, problem), Status::version);
    EXPECT_NE(problem.find("version 99"), std::string::npos) << problem;
    EXPECT_NE(problem.find("speaks version 1"), std::string::npos) << problem;
}

TEST(Messages, RefuseValuesOutOfRange) {
    const auto refused = [](const Message& message) {
        Message decoded;
        std::string problem;
        return decode_message(encode_message(message), decoded, problem) == Status::protocol &&
               !problem.empty();
    };
    Hello hello;
    hello.job_size = 0;
    EXPECT_TRUE(refused(hello));
    hello.job_size = max_job_size + 1;
    EXPECT_TRUE(refused(hello));
    hello.job_size = 4;
    hello.job_rank = 4;
    EXPECT_TRUE(refused(hello));
    hello.job_rank = 3;
    EXPECT_FALSE(refused(hello));
    hello.back_end = static_cast<BackEndRequest>(1);
    EXPECT_TRUE(refused(hello));

    constexpr auto top = std::numeric_limits<std::uint64_t>::max();
    EXPECT_TRUE(refused(RegisterRegion{0, 0, 4096}));
    EXPECT_TRUE(refused(RegisterRegion{1, 0, 0}));
    EXPECT_TRUE(refused(RegisterRegion{1, top - 100, 4096}));
    EXPECT_TRUE(refused(RegisterRegion{1, 0, top}));
    EXPECT_TRUE(refused(Refusal{Status::retry, "later"}));
    EXPECT_TRUE(refused(RegionReply{1, static_cast<Status>(-100), 0, 0}));
}

TEST(Messages, RefuseNoise) {
    std::vector<std::byte> noise(200, std::byte{0x5a});
    Message decoded;
    std::string problem;
    EXPECT_EQ(decode_message(noise, decoded, problem), Status::protocol);
    EXPECT_EQ(decode_message({}, decoded, problem), Status::protocol);
}

}  // namespace
}  // namespace offpath::control
