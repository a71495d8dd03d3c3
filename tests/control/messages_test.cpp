#include "control/messages.h"

#include "bytes.h"
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

// The kinds are part of the protocol. Their places in the variant must not move within a version.
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

// These are the bytes that other builds, on other machines, send and expect. A change here requires a new
// protocol version.
TEST(Messages, HaveTheseBytes) {
    const std::vector<std::string> expected{
        "4f46504d15000100"
        "01000000000000000200000000000000030000000400000005000000040600000000000000070000"
        "0000000000"
        "505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f00",
        "4f46504d15000200"
        "08000000000000000900000003020a00000001050000006e6f646531070000005543582074637003"
        "000000010203"
        "0100000009808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
        "4f46504d15000300"
        "fdffffff020000006e6f",
        "4f46504d15000400"
        "010000000000000000000000007f00000000100000000000",
        "4f46504d15000500"
        "0100000000000000fbffffff0202",
        "4f46504d15000600"
        "0100000000000000",
        "4f46504d15000700",
        "4f46504d15000800"
        "0403020108101112131415161718191a1b1c1d1e1f",
        "4f46504d15000900"
        "04030201080100000000000000020000000000000003000000040000000500000004060000000000"
        "00000700000000000000"
        "505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f00"
        "0d00000000000000"
        "202122232425262728292a2b2c2d2e2f0200000004054041424344454647"
        "48494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f",
        "4f46504d15000a00"
        "08000000000000000900000003020a00000001050000006e6f646531070000005543582074637003"
        "000000010203"
        "0100000009808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"
        "0b00000000000000010100000006606162636465666768696a6b6c6d6e6f70717273"
        "7475767778797a7b7c7d7e7f",
        "4f46504d15000b00",
        "4f46504d15000c00"
        "020000000000000000000000007f00000010000000000000020000000708",
        "4f46504d15000d00"
        "0300000000000000090000002f6c69622f6b2e736f01000000660200000005000000",
        "4f46504d15000e00"
        "0300000000000000ffffffff020000006e6f",
        "4f46504d15000f00"
        "040302010802000000090a",
        "4f46504d15001000"
        "101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f"
        "0100000000000000020000000000000003000000"
        "04000000"
        "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf",
        "4f46504d15001100"
        "0c00000000000000"
        "c0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedf",
        "4f46504d15001200"
        "050000006e6f646531060000007838365f363402000000013c000000"
        "c8c9cacbcccdcecfd0d1d2d3d4d5d6d7"
        "0300000000100000000000000000100000000000"
        "07000000000000000100000000000000"
        "d0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeef",
        "4f46504d15001300"
        "03020000006e6f",
        "4f46504d15001400"
        "0d00000000000000",
        "4f46504d15001500"
        "0e00000000000000",
        "4f46504d15001600"
        "0f0000000000000010000000000000001100000000000000",
        "4f46504d15001700"
        "120000000000000000000000007f00000000100000000000",
    };
    const auto messages = samples::messages();
    ASSERT_EQ(expected.size(), messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i)
        EXPECT_EQ(test::hex(encode_message(messages[i])), expected[i]) << "kind " << i + 1;
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

// A device with many network interfaces has a long description. That must not keep any client out.
TEST(Messages, CutLongTextsForPeople) {
    Welcome welcome;
    welcome.fabric = std::string(100000, 'f');
    welcome.address.resize(max_address_bytes);
    Message decoded;
    std::string problem;
    ASSERT_EQ(decode_message(encode_message(welcome), decoded, problem), Status::ok) << problem;
    EXPECT_EQ(std::get<Welcome>(decoded).fabric, std::string(512, 'f'));
    EXPECT_EQ(std::get<Welcome>(decoded).address.size(), max_address_bytes);
    welcome.node = std::string(100000, 'n');
    RemoteWelcome remote{welcome, 1, false, std::vector<std::byte>(max_link_address_bytes), {}};
    ASSERT_EQ(decode_message(encode_message(remote), decoded, problem), Status::ok) << problem;
    EXPECT_EQ(std::get<RemoteWelcome>(decoded).link.size(), max_link_address_bytes);
    ASSERT_EQ(decode_message(encode_message(KernelText{KernelTextKind::output, std::string(100000, 'o')}),
                             decoded, problem),
              Status::ok);
    EXPECT_EQ(std::get<KernelText>(decoded).text.size(), max_kernel_text_bytes);
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
    EXPECT_NE(problem.find("it speaks protocol version 99"), std::string::npos) << problem;
    EXPECT_NE(problem.find("this side version " + std::to_string(protocol_version)), std::string::npos)
        << problem;
}

TEST(Messages, TellByteOrdersAndWordSizesApart) {
    const auto problem_of = [](std::vector<std::byte> bytes, std::size_t at,
                               std::initializer_list<int> with) {
        for (int b : with)
            bytes[at++] = static_cast<std::byte>(b);
        Message decoded;
        std::string problem;
        EXPECT_EQ(decode_message(bytes, decoded, problem), Status::version);
        return problem;
    };
    for (const Message& message : {Message(Challenge{}), Message(RemoteHello{})}) {
        const auto bytes = encode_message(message);
        EXPECT_NE(problem_of(bytes, 8, {1, 2, 3, 4}).find("byte order"), std::string::npos);
        EXPECT_NE(problem_of(bytes, 12, {4}).find("32 bits"), std::string::npos);
        EXPECT_NE(problem_of(bytes, 0, {'M', 'P', 'F', 'O'}).find("byte order"), std::string::npos);
    }
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
    EXPECT_TRUE(refused(RegisterExported{0, 0, 4096, {}}));
    EXPECT_TRUE(refused(RegisterExported{1, 0, 4096, std::vector<std::byte>(max_blob_bytes + 1)}));
    EXPECT_FALSE(refused(RegisterExported{1, 0, 4096, std::vector<std::byte>(max_blob_bytes)}));
    EXPECT_FALSE(
        refused(LoadKernel{1, std::string(max_path_bytes, 'p'), std::string(max_symbol_bytes, 's')}));
    EXPECT_TRUE(refused(LoadKernel{0, "p", "s"}));
    EXPECT_TRUE(refused(LoadKernel{1, "", "s"}));
    EXPECT_TRUE(refused(LoadKernel{1, "p", ""}));
    EXPECT_TRUE(refused(LoadKernel{1, std::string("p\0q", 3), "s"}));
    EXPECT_TRUE(refused(LoadKernel{1, std::string(max_path_bytes + 1, 'p'), "s"}));
    EXPECT_TRUE(refused(LoadKernel{1, "p", std::string(max_symbol_bytes + 1, 's')}));
    EXPECT_FALSE(refused(LoadKernel{1, "p", "s", max_kernel_streams - 1, 1}));
    EXPECT_TRUE(refused(LoadKernel{1, "p", "s", max_kernel_streams, 1}));
    for (const int kind : {0, 4, 255})
        EXPECT_TRUE(refused(KernelText{static_cast<KernelTextKind>(kind), "text"}));
    RemoteHello remote;
    remote.link.resize(max_link_address_bytes);
    EXPECT_FALSE(refused(remote));
    remote.link.resize(max_link_address_bytes + 1);
    EXPECT_TRUE(refused(remote));
    remote.link.clear();
    remote.hello.job_rank = 1;
    EXPECT_TRUE(refused(remote));
    hello = {};
    hello.purpose = static_cast<Purpose>(3);
    EXPECT_TRUE(refused(hello));
    EXPECT_TRUE(refused(Refusal{Status::retry, "later"}));
    EXPECT_TRUE(refused(RegionReply{1, static_cast<Status>(-100), 0, 0}));
}

// A flag is a byte on the wire; only 0 and 1 are flags.
TEST(Messages, RefuseFlagsOfOtherValues) {
    const auto with_flag = [](std::vector<std::byte> bytes, std::size_t at, int flag) {
        bytes[at] = static_cast<std::byte>(flag);
        Message decoded;
        std::string problem;
        return decode_message(bytes, decoded, problem);
    };
    const auto welcome = encode_message(Welcome{});
    const auto target = encode_message(TargetWelcome{});
    for (const auto& [bytes, at] :
         {std::pair(welcome, std::size_t{26}), std::pair(target, std::size_t{20})}) {
        EXPECT_EQ(with_flag(bytes, at, 1), Status::ok);
        EXPECT_EQ(with_flag(bytes, at, 2), Status::protocol);
    }
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
