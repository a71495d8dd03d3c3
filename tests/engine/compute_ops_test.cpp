// Compute ops: kernels and messages that depend on each other, errors of kernels, and what becomes of kernels
// whose instance fails. The kernels are functions of the test, which answers for them when it wants.
#include "engine/schedules/plan.h"
#include "engine/teams/kernels.h"
#include "schedule/builder.h"
#include "world.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace offpath::testing {
namespace {

using schedule::Access;
using schedule::Builder;
using schedule::KernelCall;

// Runs kernels 1 to 9. Each adds its number to every element of its buffers. Only the first one in the queue
// has begun.
class HandKernels final : public engine::Kernels {
  public:
    Status run(std::uint64_t kernel, std::span<const engine::KernelBuffer> buffers,
               std::span<const std::byte> arguments, Completion* done) override {
        if (kernel == 0 || kernel > 9) return Status::invalid;
        queue_.push_back({kernel, {buffers.begin(), buffers.end()}, done});
        argument_bytes += arguments.size();
        return Status::in_progress;
    }
    bool take_back(const Completion* done) override {
        const auto job =
            std::find_if(queue_.begin(), queue_.end(), [&](const Job& each) { return each.done == done; });
        if (job == queue_.end() || job == queue_.begin()) return false;
        queue_.erase(job);
        return true;
    }
    std::size_t waiting() const { return queue_.size(); }
    void answer(Status status = Status::ok) {
        const Job job = queue_.front();
        queue_.pop_front();
        for (const engine::KernelBuffer& buffer : job.buffers) {
            auto* values = reinterpret_cast<std::int64_t*>(buffer.range.address);
            for (std::size_t i = 0; i < buffer.range.bytes / sizeof *values; ++i)
                values[i] += static_cast<std::int64_t>(job.kernel);
        }
        (*job.done)(status);
    }
    std::size_t argument_bytes = 0;

  private:
    struct Job {
        std::uint64_t kernel;
        std::vector<engine::KernelBuffer> buffers;
        Completion* done;
    };
    std::deque<Job> queue_;
};

constexpr std::size_t count = 3000, bytes = count * sizeof(std::int64_t);
using Values = std::vector<std::int64_t>;

KernelCall adds(std::uint64_t kernel, std::uint64_t offset = 0, std::uint64_t length = bytes) {
    return {kernel, std::vector<std::byte>(3), {{{0, offset}, length, Access::inout}}};
}

class ComputeOps : public ::testing::TestWithParam<std::tuple<memory::BackEnd, std::uint32_t>> {
  protected:
    ComputeOps() : world(options()) {
        for (std::uint32_t rank = 0; rank < 2; ++rank) {
            world.engine_of(rank).use_kernels(*world.session(rank), kernels[rank]);
            values[rank].assign(count, 100 * (rank + 1));
        }
    }
    static WorldOptions options() {
        WorldOptions made;
        made.memory = std::get<0>(GetParam());
        made.proxies = std::get<1>(GetParam());
        return made;
    }
    void start(std::uint32_t rank, const engine::Plan& plan, std::uint32_t sequence = 0) {
        const memory::HostRange range[] = {World::range(values[rank].data(), bytes)};
        done[rank].status.reset();
        ASSERT_EQ(world.engine_of(rank).start(world.team(rank), plan, sequence, range, &done[rank]),
                  Status::in_progress);
    }
    // Runs rounds in which no kernel is answered.
    void settle() {
        for (int i = 0; i < 200; ++i)
            world.round();
    }
    bool both_done() {
        return world.run_until([&] { return done[0].status && done[1].status; });
    }

    World world;
    HandKernels kernels[2];
    Values values[2];
    Done done[2];
};

// Rank 0: kernel 1, then send. Rank 1: receive, kernel 2, send back. Rank 0: receive, kernel 3.
TEST_P(ComputeOps, KernelsAndMessagesDependOnEachOther) {
    Builder b0(0, 2), b1(1, 2);
    b0.user_slot(bytes);
    b1.user_slot(bytes);
    const auto first = b0.compute(adds(1)), there = b0.send(1, 1, {0, 0}, bytes);
    const auto back = b0.recv(1, 2, {0, 0}, bytes), last = b0.compute(adds(3));
    b0.depend(there, first);
    b0.depend(back, there);
    b0.depend(last, back);
    const auto arrived = b1.recv(0, 1, {0, 0}, bytes), middle = b1.compute(adds(2));
    const auto answer = b1.send(0, 2, {0, 0}, bytes);
    b1.depend(middle, arrived);
    b1.depend(answer, middle);
    const engine::Plan p0(b0.finish()), p1(b1.finish());
    for (std::uint32_t replay = 0; replay < 3; ++replay) {
        values[0].assign(count, 10);
        values[1].assign(count, -1);
        start(0, p0, replay);
        start(1, p1, replay);
        settle();
        // Nothing is sent before the kernel has answered.
        ASSERT_EQ(kernels[0].waiting(), 1u);
        ASSERT_EQ(kernels[1].waiting(), 0u);
        ASSERT_EQ(values[1], Values(count, -1));
        kernels[0].answer();
        ASSERT_TRUE(world.run_until([&] { return kernels[1].waiting() == 1; }));
        ASSERT_EQ(values[1], Values(count, 11));
        kernels[1].answer();
        ASSERT_TRUE(world.run_until([&] { return kernels[0].waiting() == 1; }));
        EXPECT_TRUE(done[1].status);
        EXPECT_FALSE(done[0].status);
        kernels[0].answer();
        ASSERT_TRUE(both_done());
        EXPECT_EQ(done[0].status, Status::ok);
        EXPECT_EQ(values[0], Values(count, 16));
    }
    EXPECT_EQ(kernels[0].argument_bytes, 3u * 3 * 2);
}

// While a kernel runs, ops that do not depend on it continue.
TEST_P(ComputeOps, MessagesPassARunningKernel) {
    constexpr std::uint64_t half = bytes / 2;
    Builder b0(0, 2), b1(1, 2);
    b0.user_slot(bytes);
    b1.user_slot(bytes);
    b0.compute(adds(4, 0, half));
    b0.send(1, 1, {0, half}, half);
    b1.recv(0, 1, {0, half}, half);
    const engine::Plan p0(b0.finish()), p1(b1.finish());
    start(0, p0);
    start(1, p1);
    ASSERT_TRUE(world.run_until([&] { return done[1].status.has_value(); }));
    EXPECT_EQ(values[1].back(), 100);
    EXPECT_FALSE(done[0].status);
    kernels[0].answer();
    ASSERT_TRUE(both_done());
    EXPECT_EQ(values[0].front(), 104);
    EXPECT_EQ(values[0].back(), 100);
}

TEST_P(ComputeOps, AKernelsErrorEndsBothRanks) {
    Builder b0(0, 2), b1(1, 2);
    b0.user_slot(bytes);
    b1.user_slot(bytes);
    const auto compute = b0.compute(adds(1)), send = b0.send(1, 1, {0, 0}, bytes);
    b0.depend(send, compute);
    b1.recv(0, 1, {0, 0}, bytes);
    const engine::Plan p0(b0.finish()), p1(b1.finish());
    start(0, p0);
    start(1, p1);
    settle();
    kernels[0].answer(Status::canceled);
    ASSERT_TRUE(both_done());
    EXPECT_EQ(done[0].status, Status::canceled);
    EXPECT_EQ(done[1].status, Status::canceled);
}

TEST_P(ComputeOps, UnknownKernelsAndRanksWithoutAnyAreErrors) {
    Builder unknown(0, 2);
    unknown.user_slot(bytes);
    unknown.compute(adds(10));
    const engine::Plan plan(unknown.finish());
    start(0, plan);
    ASSERT_TRUE(world.run_until([&] { return done[0].status.has_value(); }));
    EXPECT_EQ(done[0].status, Status::invalid);

    World bare(options());
    const memory::HostRange range[] = {World::range(values[0].data(), bytes)};
    Done refused;
    ASSERT_EQ(bare.engine_of(0).start(bare.team(0), plan, 0, range, &refused), Status::in_progress);
    ASSERT_TRUE(bare.run_until([&] { return refused.status.has_value(); }));
    EXPECT_EQ(refused.status, Status::unsupported);
}

// An instance that fails keeps its buffers until the kernel that has begun returns. The others never begin.
TEST_P(ComputeOps, AFailedInstanceWaitsForItsRunningKernelOnly) {
    Builder b0(0, 2);
    b0.user_slot(bytes);
    for (std::uint64_t kernel = 1; kernel <= 3; ++kernel)
        b0.compute(adds(kernel));
    b0.recv(1, 1, {0, 0}, bytes);
    const engine::Plan p0(b0.finish());
    start(0, p0);
    settle();
    ASSERT_EQ(kernels[0].waiting(), 3u);
    engine::Engine& engine = world.engine_of(0);
    EXPECT_FALSE(engine.close_session(world.session(0), Status::canceled));
    settle();
    EXPECT_EQ(kernels[0].waiting(), 1u);
    EXPECT_FALSE(done[0].status);
    kernels[0].answer();
    ASSERT_TRUE(world.run_until([&] { return done[0].status.has_value(); }));
    EXPECT_EQ(done[0].status, Status::canceled);
    EXPECT_EQ(values[0], Values(count, 101));
    EXPECT_TRUE(engine.close_session(world.session(0), Status::canceled));
}

class ComputeOpsOfTwoProxies : public ComputeOps {};

TEST_P(ComputeOpsOfTwoProxies, ALostPeerEndsTheInstanceAfterItsKernel) {
    Builder b0(0, 2);
    b0.user_slot(bytes);
    b0.compute(adds(5));
    b0.recv(1, 1, {0, 0}, bytes);
    const engine::Plan p0(b0.finish());
    start(0, p0);
    settle();
    world.kill_proxy(1);
    settle();
    EXPECT_FALSE(done[0].status);
    kernels[0].answer();
    ASSERT_TRUE(world.run_until([&] { return done[0].status.has_value(); }));
    EXPECT_EQ(done[0].status, Status::peer_lost);
}

// An answer of the kernel that comes after the engine has closed is ignored.
TEST_P(ComputeOps, AClosedEngineIgnoresAnswers) {
    Builder b0(0, 2);
    b0.user_slot(bytes);
    b0.compute(adds(5));
    const engine::Plan p0(b0.finish());
    start(0, p0);
    settle();
    world.engine_of(0).close();
    kernels[0].answer();
    EXPECT_FALSE(done[0].status);
}

INSTANTIATE_TEST_SUITE_P(Memory, ComputeOps,
                         ::testing::Combine(::testing::Values(memory::BackEnd::map, memory::BackEnd::cma,
                                                              memory::BackEnd::staged),
                                            ::testing::Values(1u, 2u)),
                         [](const auto& made) {
                             return std::string(memory::to_string(std::get<0>(made.param))) +
                                    (std::get<1>(made.param) == 1 ? "OneProxy" : "TwoProxies");
                         });

INSTANTIATE_TEST_SUITE_P(Memory, ComputeOpsOfTwoProxies,
                         ::testing::Combine(::testing::Values(memory::BackEnd::map, memory::BackEnd::cma,
                                                              memory::BackEnd::staged),
                                            ::testing::Values(2u)));

}  // namespace
}  // namespace offpath::testing
