#include "engine/reductions/atomic_update.h"

#include "schedule/op.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <thread>

namespace offpath::engine {
namespace {

using rma::OpKind;
using schedule::DataType;
using schedule::Reduction;

rma::Access access(OpKind kind, DataType type, std::uint8_t reduction, std::uint64_t bytes) {
    return {0, bytes, 0, kind, static_cast<std::uint8_t>(type), reduction};
}

template <typename T>
bool run(OpKind kind, DataType type, std::uint8_t reduction, T& target, std::array<T, 2> operands,
         T& former) {
    return update_atomically(access(kind, type, reduction, sizeof(T)),
                             reinterpret_cast<const std::byte*>(operands.data()),
                             reinterpret_cast<std::byte*>(&target), reinterpret_cast<std::byte*>(&former));
}

TEST(AtomicUpdate, DoesWhatTheKindSays) {
    const auto code = [](Reduction reduction) { return static_cast<std::uint8_t>(reduction); };
    std::int32_t word = -5, former = 0;
    EXPECT_TRUE(
        run<std::int32_t>(OpKind::accumulate, DataType::int32, code(Reduction::sum), word, {7, 0}, former));
    EXPECT_EQ(word, 2);
    EXPECT_EQ(former, -5);
    EXPECT_TRUE(run<std::int32_t>(OpKind::get_accumulate, DataType::int32, code(Reduction::bor), word,
                                  {12, 0}, former));
    EXPECT_EQ(word, 14);
    EXPECT_TRUE(
        run<std::int32_t>(OpKind::accumulate, DataType::int32, code(Reduction::band), word, {6, 0}, former));
    EXPECT_EQ(word, 6);
    EXPECT_TRUE(
        run<std::int32_t>(OpKind::accumulate, DataType::int32, code(Reduction::bxor), word, {3, 0}, former));
    EXPECT_EQ(word, 5);
    EXPECT_TRUE(run<std::int32_t>(OpKind::compare_swap, DataType::int32, rma::replace, word, {9, 4}, former));
    EXPECT_EQ(word, 5);
    EXPECT_EQ(former, 5);
    EXPECT_TRUE(run<std::int32_t>(OpKind::compare_swap, DataType::int32, rma::replace, word, {9, 5}, former));
    EXPECT_EQ(word, 9);
    EXPECT_EQ(former, 5);
    double value = 1.5, before = 0;
    EXPECT_TRUE(
        run<double>(OpKind::get_accumulate, DataType::float64, rma::replace, value, {2.5, 0}, before));
    EXPECT_EQ(value, 2.5);
    EXPECT_EQ(before, 1.5);
    EXPECT_TRUE(update_atomically(access(OpKind::get_accumulate, DataType::float64, rma::no_op, 8), nullptr,
                                  reinterpret_cast<std::byte*>(&value),
                                  reinterpret_cast<std::byte*>(&before)));
    EXPECT_EQ(before, 2.5);
}

TEST(AtomicUpdate, LeavesTheRestAlone) {
    alignas(8) std::array<std::byte, 24> memory{};
    const std::array<double, 2> operands{1, 2};
    const auto* source = reinterpret_cast<const std::byte*>(operands.data());
    const auto sum = static_cast<std::uint8_t>(Reduction::sum);
    EXPECT_FALSE(update_atomically(access(OpKind::accumulate, DataType::float64, sum, 8), source,
                                   memory.data(), nullptr));
    EXPECT_FALSE(update_atomically(access(OpKind::accumulate, DataType::uint64, sum, 8), source,
                                   memory.data() + 4, nullptr));
    EXPECT_FALSE(update_atomically(access(OpKind::accumulate, DataType::uint64, sum, 16), source,
                                   memory.data(), nullptr));
    EXPECT_FALSE(update_atomically(access(OpKind::accumulate, DataType::uint16, sum, 2), source,
                                   memory.data(), nullptr));
    EXPECT_EQ(memory, (std::array<std::byte, 24>{}));
}

TEST(AtomicUpdate, IsAtomicToOthersOnTheSameMemory) {
    std::uint64_t word = 0;
    constexpr std::uint64_t rounds = 200000;
    std::thread other([&] {
        for (std::uint64_t i = 0; i < rounds; ++i)
            __atomic_fetch_add(&word, 1, __ATOMIC_RELAXED);
    });
    const std::uint64_t one = 1;
    const auto add =
        access(OpKind::accumulate, DataType::uint64, static_cast<std::uint8_t>(Reduction::sum), 8);
    for (std::uint64_t i = 0; i < rounds; ++i)
        update_atomically(add, reinterpret_cast<const std::byte*>(&one), reinterpret_cast<std::byte*>(&word),
                          nullptr);
    other.join();
    EXPECT_EQ(word, 2 * rounds);
}

}  // namespace
}  // namespace offpath::engine
