#include "control/commands.h"

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
