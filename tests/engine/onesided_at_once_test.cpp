// Windows: operations of direct callers, which the engine does at once or refuses.
#include "onesided_fixture.h"

namespace offpath::testing {
namespace {

TEST(OneSidedAtOnce, SpansNeighbours) {
    WorldOptions options;
    options.ranks = 2;
    options.memory = BackEnd::map;
    World world(options);
    engine::Window* window = nullptr;
    ASSERT_EQ(world.engine_of(1).create_window(world.team(1), 3, {}, true, &window), Status::ok);
    std::vector<std::uint32_t> memory(16);
    const auto begin = reinterpret_cast<std::uint64_t>(memory.data());
    ASSERT_EQ(world.engine_of(1).attach_window(*window, World::range(memory.data(), 30), begin), Status::ok);
    const auto rest = World::range(reinterpret_cast<std::byte*>(memory.data()) + 30, 34);
    ASSERT_EQ(world.engine_of(1).attach_window(*window, rest, begin + 30), Status::ok);
    engine::DirectAccess call;
    call.job = {7, 9};
    call.team = 42;
    call.window = 3;
    call.target = 1;
    std::span<const std::byte> result;
    const auto at_once = [&](OpKind kind, std::uint64_t element, std::span<const std::uint32_t> operands) {
        call.kind = kind;
        call.offset = begin + 4 * element;
        call.operands = std::as_bytes(operands);
        call.bytes = call.operands.empty() ? 12 : call.operands.size();
        return world.engine_of(1).one_sided_at_once(call, result);
    };
    const std::vector<std::uint32_t> values = {5, 6, 7}, expected = {5, 12, 14};
    EXPECT_EQ(at_once(OpKind::put, 6, values), Status::ok);
    EXPECT_EQ(memory[7], 6u);
    call.type = static_cast<std::uint8_t>(DataType::uint32);
    call.reduction = static_cast<std::uint8_t>(Reduction::sum);
    EXPECT_EQ(at_once(OpKind::accumulate, 7, std::span(values).subspan(1)), Status::ok);
    EXPECT_EQ(at_once(OpKind::get, 6, {}), Status::ok);
    EXPECT_TRUE(std::ranges::equal(result, std::as_bytes(std::span(expected))));
    EXPECT_EQ(at_once(OpKind::put, 14, values), Status::access);
    // The elements are a stride apart: in both ranges, and the last one beside them.
    call.element = 4;
    call.stride = 16;
    EXPECT_EQ(at_once(OpKind::put, 3, values), Status::ok);
    EXPECT_EQ(memory[3] + memory[7] + memory[11], 18u);
    EXPECT_EQ(at_once(OpKind::put, 8, values), Status::access);
    EXPECT_EQ(memory[12], 0u);
}

TEST(OneSidedAtOnce, DoesWhatItCanAndRefusesTheRest) {
    for (const BackEnd back_end : {BackEnd::map, BackEnd::cma}) {
        WorldOptions options;
        options.ranks = 2;
        options.memory = back_end;
        World world(options);
        Windows windows(world, 4096);
        engine::DirectAccess call;
        call.job = {7, 9};
        call.team = 42;
        call.window = 3;
        call.target = 1;
        const auto at_once = [&](OpKind kind, std::uint64_t offset, std::span<const std::byte> operands,
                                 std::uint64_t bytes, std::span<const std::byte>& result) {
            call.kind = kind;
            call.offset = offset;
            call.bytes = bytes;
            call.operands = operands;
            return world.engine_of(1).one_sided_at_once(call, result);
        };
        std::span<const std::byte> result;
        const std::uint64_t word = 40, more = 2;
        const auto operand = std::as_bytes(std::span(&word, 1)), second = std::as_bytes(std::span(&more, 1));
        auto* const there = reinterpret_cast<std::uint64_t*>(windows.memory[1].data());
        // These requests are out of range, or malformed.
        EXPECT_EQ(at_once(OpKind::put, 4090, operand, 8, result), Status::access);
        EXPECT_EQ(at_once(OpKind::put, 0, operand, 9, result), Status::protocol);
        EXPECT_EQ(at_once(OpKind::get, 0, operand, 8, result), Status::protocol);
        EXPECT_EQ(at_once(OpKind::put, 0, {}, 0, result), Status::protocol);
        EXPECT_EQ(at_once(OpKind::lock_shared, 0, operand, 8, result), Status::protocol);
        EXPECT_EQ(at_once(static_cast<OpKind>(99), 0, operand, 8, result), Status::protocol);
        EXPECT_EQ(at_once(OpKind::accumulate, 0, operand, 8, result), Status::protocol) << "no type";
        call.window = 4;
        EXPECT_EQ(at_once(OpKind::put, 0, operand, 8, result), Status::access);
        call.window = 3;
        call.job.low ^= 1;
        EXPECT_EQ(at_once(OpKind::put, 0, operand, 8, result), Status::access) << "another job";
        call.job.low ^= 1;
        EXPECT_EQ(*there, 0u);
        // A lock belongs to the rank that the call names as its origin.
        const auto lock = [&](OpKind kind, std::uint32_t origin) {
            call.origin = call.origin_job = origin;
            return at_once(kind, 0, {}, 0, result);
        };
        call.origin = 1;
        EXPECT_EQ(at_once(OpKind::lock_shared, 0, {}, 0, result), Status::protocol) << "another rank's name";
        EXPECT_EQ(lock(OpKind::lock_shared, 2), Status::protocol) << "no rank of the team";
        EXPECT_EQ(lock(OpKind::lock_exclusive, 0), Status::ok);
        EXPECT_EQ(lock(OpKind::lock_exclusive, 0), Status::invalid) << "has it already";
        EXPECT_EQ(lock(OpKind::lock_shared, 1), Status::retry);
        EXPECT_EQ(lock(OpKind::unlock, 1), Status::invalid) << "is not its to give back";
        EXPECT_EQ(lock(OpKind::unlock, 0), Status::ok);
        EXPECT_EQ(lock(OpKind::lock_shared, 1), Status::ok);
        EXPECT_EQ(lock(OpKind::lock_shared, 0), Status::ok);
        EXPECT_EQ(lock(OpKind::unlock, 1), Status::ok);
        EXPECT_EQ(lock(OpKind::lock_exclusive, 1), Status::retry);
        EXPECT_EQ(lock(OpKind::unlock, 0), Status::ok);
        if (back_end == BackEnd::cma) {
            EXPECT_EQ(at_once(OpKind::put, 0, operand, 8, result), Status::unsupported);
            continue;
        }
        EXPECT_EQ(at_once(OpKind::put, 0, operand, 8, result), Status::ok);
        EXPECT_EQ(*there, 40u);
        // These layouts are invalid, or leave the window.
        using Layout = std::pair<std::uint64_t, std::uint64_t>;
        for (const auto& [element, stride] : {Layout{3, 8}, Layout{4, 3}, Layout{4, 0}, Layout{16, 16},
                                              Layout{4, UINT64_MAX}, Layout{4, UINT64_MAX / 2 + 8}}) {
            call.element = element;
            call.stride = stride;
            EXPECT_EQ(at_once(OpKind::put, 0, operand, 8, result), Status::protocol)
                << element << ' ' << stride;
        }
        call.element = 4;
        call.stride = 4096;
        EXPECT_EQ(at_once(OpKind::get, 0, {}, 8, result), Status::access);
        call.stride = 4092;
        EXPECT_EQ(at_once(OpKind::get, 0, {}, 8, result), Status::ok);
        ASSERT_EQ(result.size(), 8u);
        EXPECT_EQ(std::memcmp(result.data(), there, 4), 0);
        call.element = call.stride = 0;
        result = {};
        call.type = static_cast<std::uint8_t>(DataType::uint64);
        call.reduction = static_cast<std::uint8_t>(Reduction::sum);
        EXPECT_EQ(at_once(OpKind::accumulate, 0, second, 8, result), Status::ok);
        EXPECT_TRUE(result.empty());
        EXPECT_EQ(at_once(OpKind::get_accumulate, 0, second, 8, result), Status::ok);
        ASSERT_EQ(result.size(), 8u);
        std::uint64_t was = 0;
        std::memcpy(&was, result.data(), 8);
        EXPECT_EQ(was, 42u);
        EXPECT_EQ(at_once(OpKind::accumulate, 0, second.first(4), 4, result), Status::protocol)
            << "half a word";
        const std::uint64_t both[] = {7, 44};
        EXPECT_EQ(at_once(OpKind::compare_swap, 0, std::as_bytes(std::span(both)), 8, result), Status::ok);
        EXPECT_EQ(*there, 7u);
        EXPECT_EQ(at_once(OpKind::get, 0, {}, 8, result), Status::ok);
        ASSERT_EQ(result.size(), 8u);
        EXPECT_EQ(std::memcmp(result.data(), there, 8), 0);
    }
}

}  // namespace
}  // namespace offpath::testing
