// The executor itself: what each op does, and that the executor detects the errors that it exists to detect.
#include "dataflow.h"
#include "schedule/builder.h"

#include <gtest/gtest.h>

#include <cstring>

namespace offpath::testing {
namespace {

using namespace offpath::schedule;

Buffer bytes_of(std::initializer_list<int> values) {
    Buffer buffer;
    for (int value : values)
        buffer.push_back(static_cast<std::byte>(value));
    return buffer;
}

TEST(Dataflow, RunsEveryKindOfOp) {
    std::vector<Schedule> schedules;
    {
        Builder b(0, 2);
        const auto user = b.user_slot(4), scratch = b.scratch_slot(2);
        const OpId send = b.send(1, 0, {user, 0}, 2);
        const OpId copy = b.copy({user, 0}, {scratch, 0}, 2);
        const OpId copied = b.send(1, 1, {scratch, 0}, 2);
        const OpId signal = b.signal(1, 4);
        const OpId wait = b.wait(8, 1);
        const OpId answer = b.recv(1, 2, {user, 2}, 2);
        b.depend(copied, copy);
        b.depend(signal, {copied, send});
        b.depend(answer, wait);
        schedules.push_back(b.finish());
    }
    {
        Builder b(1, 2);
        const auto user = b.user_slot(4);
        const OpId recv = b.recv(0, 0, {user, 0}, 2), copied = b.recv(0, 1, {user, 2}, 2);
        const OpId wait = b.wait(4, 1);
        const OpId reduce = b.reduce(DataType::uint8, Reduction::sum, {user, 2}, {user, 0}, 2);
        const OpId compute = b.compute({3, {}, {{{user, 0}, 2, Access::inout}}});
        const OpId signal = b.signal(0, 8), answer = b.send(0, 2, {user, 0}, 2);
        b.depend(reduce, {recv, copied, wait});
        b.depend(compute, reduce);
        b.depend(signal, compute);
        b.depend(answer, compute);
        schedules.push_back(b.finish());
    }
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        DataflowOptions options{.seed = seed, .eager = seed % 2 == 0};
        options.kernel = [](const KernelCall& call, std::span<const std::span<std::byte>> data) {
            for (std::byte& byte : data[0])
                byte = static_cast<std::byte>(static_cast<std::uint64_t>(byte) * call.kernel);
        };
        std::vector<RankBuffers> buffers{{bytes_of({1, 2, 0, 0})}, {bytes_of({0, 0, 0, 0})}};
        const auto result = run_dataflow(schedules, buffers, options);
        ASSERT_TRUE(result.finished) << result.problem;
        EXPECT_EQ(buffers[0][0], bytes_of({1, 2, 6, 12}));
        EXPECT_EQ(buffers[1][0], bytes_of({6, 12, 1, 2}));
    }
}

TEST(Dataflow, ReducesWholeElements) {
    Builder b(0, 1);
    b.user_slot(8);
    b.user_slot(8);
    b.reduce(DataType::float32, Reduction::maximum, {0, 0}, {1, 0}, 8);
    const std::vector<Schedule> schedules{b.finish()};
    const float source[2] = {1.5f, -2.5f}, target[2] = {-3.f, 4.f};
    std::vector<RankBuffers> buffers{{Buffer(8), Buffer(8)}};
    std::memcpy(buffers[0][0].data(), source, 8);
    std::memcpy(buffers[0][1].data(), target, 8);
    ASSERT_TRUE(run_dataflow(schedules, buffers, {}).finished);
    float result[2];
    std::memcpy(result, buffers[0][1].data(), 8);
    EXPECT_EQ(result[0], 1.5f);
    EXPECT_EQ(result[1], 4.f);
}

TEST(Dataflow, ShowsAMissingDependency) {
    // Rank 1 forwards what it receives without waiting for it.
    const auto wrong_results = [](bool with_dependency) {
        std::vector<Schedule> schedules;
        Builder first(0, 3), middle(1, 3), last(2, 3);
        first.send(1, 0, {first.user_slot(8), 0}, 8);
        const auto slot = middle.user_slot(8);
        const OpId recv = middle.recv(0, 0, {slot, 0}, 8), send = middle.send(2, 0, {slot, 0}, 8);
        if (with_dependency) middle.depend(send, recv);
        last.recv(1, 0, {last.user_slot(8), 0}, 8);
        schedules.push_back(first.finish());
        schedules.push_back(middle.finish());
        schedules.push_back(last.finish());
        int wrong = 0;
        for (std::uint64_t seed = 0; seed < 100; ++seed) {
            std::vector<RankBuffers> buffers{{Buffer(8, std::byte{9})}, {Buffer(8)}, {Buffer(8)}};
            EXPECT_TRUE(run_dataflow(schedules, buffers, {.seed = seed, .eager = seed % 2 == 0}).finished);
            wrong += buffers[2][0] != buffers[0][0];
        }
        return wrong;
    };
    EXPECT_EQ(wrong_results(true), 0);
    EXPECT_GT(wrong_results(false), 20);
}

TEST(Dataflow, DetectsADeadlock) {
    std::vector<Schedule> schedules;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
        Builder b(rank, 2);
        const auto slot = b.user_slot(8);
        const OpId recv = b.recv(1 - rank, 0, {slot, 0}, 4), send = b.send(1 - rank, 0, {slot, 4}, 4);
        b.depend(send, recv);
        schedules.push_back(b.finish());
    }
    std::vector<RankBuffers> buffers(2);
    const auto result = run_dataflow(schedules, buffers, {});
    EXPECT_FALSE(result.finished);
    EXPECT_EQ(result.problem, "rank 0 op 0 (recv from rank 1, tag 0) never ends");
}

}  // namespace
}  // namespace offpath::testing
