#include "control/commands.h"

#include "bytes.h"
#include "samples.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace offpath::control {
namespace {

std::vector<std::byte> again(std::span<const std::byte> record) {
    Command decoded;
    std::string problem;
    EXPECT_EQ(decode_command(record, decoded, problem), Status::ok) << problem;
    return samples::record_of(decoded);
}

TEST(Commands, SurviveTheRing) {
    const samples::Storage storage;
    const auto commands = samples::commands(storage);
    ASSERT_EQ(commands.size(), std::variant_size_v<Command>) << "a command has no sample";
    std::set<std::uint16_t> kinds;
    for (const Command& command : commands) {
        const auto record = samples::record_of(command);
        std::uint16_t kind;
        std::memcpy(&kind, record.data() + 4, sizeof kind);
        EXPECT_TRUE(kinds.insert(kind).second) << "two commands have kind " << kind;
        EXPECT_EQ(again(record), record);
    }
}

// Client and proxy may be of different builds of one version. A change here requires a new protocol version.
TEST(Commands, HaveTheseBytes) {
    const samples::Storage storage;
    const std::string sevens = test::hex(storage.bytes);
    const std::vector<std::string> expected{
        "7800000001000000"
        "090000000000000064000000" +
            sevens,
        "2800000002000000"
        "04000000180000000b000000000000000c000000000000000d00000000000000",
        "2c00000003000000"
        "4d000000000000000100000003000000000000000c000000000000000200000005000000",
        "1000000004000000"
        "4d00000000000000",
        "8800000005000000"
        "05000000000000002c01000000000000640000000000000064000000" +
            sevens,
        "1000000006000000"
        "0500000000000000",
        "5c00000007000000"
        "05000000000000004d00000000000000090000000a00000002000000000000003000000000000000"
        "00000000001000000000000040000000000000000300000000000000800000000000000000010000"
        "00000000",
        "3400000008000000"
        "4d00000000000000020000002a0000000b0000000000000000000000002000000000000000020000"
        "00000000",
        "3800000009000000"
        "4d00000000000000ffffffffffffffff0c0000000100000004000000000000000000000000000000"
        "0004000000000000",
        "2400000016000000"
        "4d0000000000000002000000ffffffff130000000300000001000000",
        "400000000a000000"
        "4d00000000000000020000000d000000050000000000000006000000000000000000000000000000"
        "00200000000000000002000000000000",
        "400000000b000000"
        "4d00000000000000010000000e000000070000000000000008000000000000000400000000000000"
        "00000000000000000004000000000000",
        "240000000c000000"
        "4d000000000000000100000007000000000000000800000000000000",
        "240000000d000000"
        "4d000000000000000200000009000000000000000a00000000000000",
        "3800000028000000"
        "4d0000000000000006000000000000000d0000000100000005000000000000000000000000000000"
        "0008000000000000",
        "1c00000029000000"
        "4d0000000000000006000000000000000e000000",
        "3c0000002a000000"
        "4d00000000000000060000000000000000100000007f00000f000000000000000000000000100000"
        "007f00000010000000000000",
        "240000002b000000"
        "4d00000000000000060000000000000000100000007f000010000000",
        "fc0000002c000000"
        "4d00000000000000060000000000000000000000000000004000000000000000ffffffff02000000"
        "0407010100000000020000000000000000000000000000000030000000000000400000000000000000000000"
        "00000000004000000000000040000000000000002000000008000000000000001000000000000000"
        "4000000000000000300000000000000064000000" +
            sevens,
        "200000002d000000"
        "4d00000000000000060000000000000011000000ffffffff",
        "340000002e000000"
        "4d000000000000000600000000000000140000000600000000000000000000000000000038000000"
        "00000000",
        "c00000003c000000"
        "08000000000000001200000040000000000000000000000000100000000000004000000000000000"
        "01000000000000000300000000000000800000000000000000010000000000000300000000000000"
        "64000000" +
            sevens,
        "100000003d000000"
        "0800000000000000",
        "180000000e000000"
        "00000000007f00000000100000000000",
    };
    const auto commands = samples::commands(storage);
    ASSERT_EQ(expected.size(), commands.size());
    for (std::size_t i = 0; i < commands.size(); ++i)
        EXPECT_EQ(test::hex(samples::record_of(commands[i])), expected[i]) << "command " << i;
}

TEST(Commands, ReadWhatWasWritten) {
    const samples::Storage storage;
    const auto record = samples::record_of(Start{5, 77, 9, 10, 2, 0, pack<BufferRange>(storage.ranges)});
    Command decoded;
    std::string problem;
    ASSERT_EQ(decode_command(record, decoded, problem), Status::ok);
    const auto& start = std::get<Start>(decoded);
    EXPECT_EQ(start.schedule, 5u);
    EXPECT_EQ(start.team, 77u);
    EXPECT_EQ(start.sequence, 9u);
    EXPECT_EQ(start.completion, 10u);
    ASSERT_EQ(start.ranges.size(), 2u);
    EXPECT_EQ(start.ranges[1], (BufferRange{3, 128, 256}));
}

TEST(Commands, RefuseEveryShorterAndLongerForm) {
    const samples::Storage storage;
    for (const Command& command : samples::commands(storage)) {
        auto record = samples::record_of(command);
        for (std::size_t length = 0; length < record.size(); ++length) {
            Command decoded;
            std::string problem;
            EXPECT_EQ(decode_command(std::span(record).first(length), decoded, problem), Status::protocol);
            EXPECT_FALSE(problem.empty());
            // The same again, with a header that agrees with the shorter length.
            if (length < record_header_bytes) continue;
            auto cut = std::vector(record.begin(), record.begin() + static_cast<std::ptrdiff_t>(length));
            const auto bytes = static_cast<std::uint32_t>(length);
            std::memcpy(cut.data(), &bytes, sizeof bytes);
            EXPECT_EQ(decode_command(cut, decoded, problem), Status::protocol)
                << command.index() << " " << length;
        }
        record.push_back(std::byte{0});
        const auto bytes = static_cast<std::uint32_t>(record.size());
        std::memcpy(record.data(), &bytes, sizeof bytes);
        Command decoded;
        std::string problem;
        EXPECT_EQ(decode_command(record, decoded, problem), Status::protocol);
    }
}

TEST(Commands, RefuseValuesOutOfRange) {
    const samples::Storage s;
    const auto refused = [](const Command& command) {
        const auto record = samples::record_of(command);
        Command decoded;
        std::string problem;
        return decode_command(record, decoded, problem) == Status::protocol && !problem.empty();
    };
    EXPECT_TRUE(refused(AddProxy{0, s.bytes}));
    EXPECT_TRUE(refused(AddProxy{1, {}}));
    EXPECT_TRUE(refused(Ranks{UINT32_MAX, pack<std::uint64_t>(s.proxies)}));
    EXPECT_TRUE(refused(CreateTeam{1, 3, 3, 0, pack<std::uint32_t>(s.ranks)}));  // rank not below size
    EXPECT_TRUE(refused(CreateTeam{1, 0, 3, 1, pack<std::uint32_t>(s.ranks)}));  // leaves the team
    EXPECT_TRUE(refused(CreateTeam{1, 0, 0, 0, pack<std::uint32_t>(s.ranks)}));
    EXPECT_TRUE(refused(SchedulePart{1, 100, 1, s.bytes}));
    EXPECT_TRUE(refused(SchedulePart{1, UINT64_MAX, 0, s.bytes}));
    EXPECT_TRUE(refused(Start{1, 1, 0, 0, 1, 0, pack<BufferRange>(s.ranges)}));
    EXPECT_TRUE(refused(Start{1, 1, 0, 0, max_buffers + 1, 0, pack<BufferRange>(s.ranges)}));
    EXPECT_TRUE(refused(Start{1, 1, 0, 0, 2, UINT32_MAX, pack<BufferRange>(s.ranges)}));
    EXPECT_TRUE(refused(CreateWindow{1, 1, 0, 2, {}}));
    const auto operation = [&](std::uint8_t kind, std::uint32_t segments, std::uint32_t first) {
        const rma::Access access{0, 64, 0, static_cast<rma::OpKind>(kind)};
        return WindowOperation{1, 1, access, 0, segments, first, {}, {}, pack<rma::Segment>(s.segments), {}};
    };
    EXPECT_FALSE(refused(operation(1, 2, 0)));
    EXPECT_TRUE(refused(operation(0, 2, 0)));
    EXPECT_TRUE(refused(operation(9, 2, 0)));
    EXPECT_TRUE(refused(operation(1, 1, 0)));
    EXPECT_TRUE(refused(operation(1, 2, 1)));
    EXPECT_TRUE(refused(operation(1, rma::max_segments + 1, 0)));

    std::vector<KernelBuffer> buffers(max_kernel_buffers, {{0, 0x1000, 64}, 1, 0});
    const std::vector<std::byte> arguments(max_argument_bytes + 1);
    const auto compute = [&](std::size_t count, std::size_t bytes) {
        return Compute{1, 0, pack(std::span<const KernelBuffer>(buffers).first(count)),
                       std::span(arguments).first(bytes)};
    };
    EXPECT_FALSE(refused(compute(max_kernel_buffers, max_argument_bytes)));
    EXPECT_FALSE(refused(compute(0, 0)));
    EXPECT_TRUE(refused(compute(0, max_argument_bytes + 1)));
    for (const std::uint32_t access : {0u, 4u}) {
        buffers.back().access = access;
        EXPECT_TRUE(refused(compute(max_kernel_buffers, 0)));
    }
    buffers.resize(max_kernel_buffers + 1, {{0, 0x1000, 64}, 1, 0});
    buffers[max_kernel_buffers - 1].access = 1;
    EXPECT_TRUE(refused(compute(max_kernel_buffers + 1, 0)));
}

}  // namespace
}  // namespace offpath::control
