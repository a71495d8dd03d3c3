// Kernels that the daemon gives to their process before the kernels in front of them are done: if the process
// has a core of its own, and if it shares the core of the only proxy.
#include "harness.h"
#include "kernel_calls.h"

#include <gtest/gtest.h>

#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace offpath::test {
namespace {

std::string a_cpu() {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    sched_getaffinity(0, sizeof cpus, &cpus);
    int cpu = 0;
    while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &cpus))
        ++cpu;
    return std::to_string(cpu);
}

class KernelsAhead : public testing::TestWithParam<const char*> {
  protected:
    KernelsAhead()
        : daemon(directory.path(), std::string(GetParam()) == "one"
                                       ? std::vector<std::string>{"--cpus", a_cpu()}
                                       : std::vector<std::string>{}) {}
    void SetUp() override { ASSERT_TRUE(daemon.ready()) << daemon.log(); }
    TemporaryDirectory directory;
    DaemonProcess daemon;
};
INSTANTIATE_TEST_SUITE_P(Cores, KernelsAhead, testing::Values("one", "any"));

std::uint64_t* values(offpath_context_h context, std::size_t count, std::uint64_t value) {
    void* memory = nullptr;
    expect(offpath_mem_alloc(context, count * sizeof(std::uint64_t), &memory), OFFPATH_OK, "alloc");
    auto* at = static_cast<std::uint64_t*>(memory);
    std::fill(at, at + count, value);
    return at;
}

// Each operation ends with the result of its own kernel. An error stops none of the later ones.
TEST_P(KernelsAhead, EndAsTheirKernelsDo) {
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_kernel_h sleeper = load(context, "test_sleep"), result = load(context, "test_result"),
                         step = load(context, "test_step");
        auto* value = values(context, 1, 1);
        const offpath_request_h first = start(sleeper, 30, {});
        std::vector<offpath_request_h> results, steps;
        std::uint64_t wanted = 1;
        for (std::uint64_t round = 0; round < 60; ++round) {
            results.push_back(start(result, round % 3 == 0 ? 0 : round % 3 == 1 ? -5 : 1, {}));
            steps.push_back(start(step, round, {{value, sizeof *value, OFFPATH_INOUT}}));
            wanted = 3 * wanted + round;
        }
        expect(finish(first), OFFPATH_OK, "the first");
        for (std::size_t round = 0; round < results.size(); ++round) {
            const offpath_status_t status = round % 3 == 0   ? OFFPATH_OK
                                            : round % 3 == 1 ? OFFPATH_ERR_MEMORY
                                                             : OFFPATH_ERR_SYSTEM;
            expect(finish(results[round]), status, "result " + std::to_string(round));
            expect(finish(steps[round]), OFFPATH_OK, "step " + std::to_string(round));
        }
        require(*value == wanted, "all steps in order");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
    EXPECT_TRUE(daemon.running());
}

// A kernel with copies reads what earlier kernels have written, and nothing that later ones write.
TEST_P(KernelsAhead, KeepTheirPlaceAmongCopies) {
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        constexpr std::size_t n = 3000, rounds = 20;
        offpath_context_h context = me.init();
        offpath_kernel_h step = load(context, "test_step"), combine = load(context, "test_combine");
        auto* mapped = values(context, n, 0);  // bits of a double of about 0
        std::vector<std::vector<double>> b(rounds, std::vector<double>(n)), out = b;
        std::vector<offpath_request_h> requests;
        for (std::size_t round = 0; round < rounds; ++round) {
            for (int i = 0; i < 6; ++i)
                requests.push_back(start(step, std::uint64_t{1}, {{mapped, n * 8, OFFPATH_INOUT}}));
            requests.push_back(start(combine, 1.0,
                                     {{mapped, n * 8, OFFPATH_IN},
                                      {b[round].data(), n * 8, OFFPATH_INOUT},
                                      {out[round].data(), n * 8, OFFPATH_OUT}}));
        }
        for (offpath_request_h request : requests)
            expect(finish(request), OFFPATH_OK, "kernel");
        std::uint64_t bits = 0;
        for (std::size_t round = 0; round < rounds; ++round) {
            for (int i = 0; i < 6; ++i)
                bits = 3 * bits + 1;
            double seen;
            std::memcpy(&seen, &bits, sizeof seen);
            if (seen != seen) continue;
            require(out[round][0] == seen && out[round][n - 1] == seen && b[round][0] == 1.0,
                    "what round " + std::to_string(round) + " saw");
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST_P(KernelsAhead, RunBeforeTheirUnload) {
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        for (int again = 0; again < 3; ++again) {
            offpath_kernel_h sleeper = load(context, "test_sleep"), step = load(context, "test_step");
            auto* value = values(context, 1, 0);
            std::vector<offpath_request_h> requests{start(sleeper, 10, {})};
            for (int i = 0; i < 7; ++i)
                requests.push_back(start(step, std::uint64_t{1}, {{value, sizeof *value, OFFPATH_INOUT}}));
            expect(offpath_kernel_unload(step), OFFPATH_OK, "unload");
            expect(offpath_mem_free(context, value), OFFPATH_OK, "free, after the last step");
            for (offpath_request_h request : requests)
                expect(finish(request), OFFPATH_OK, "kernel");
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// Kernels that were done when their process ended stay done. All others are canceled, and do nothing later.
TEST_P(KernelsAhead, AreCanceledWithTheirProcess) {
    Job job(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_kernel_h sleeper = load(context, "test_sleep"), step = load(context, "test_step");
        auto* value = values(context, 1, 0);
        const Buffers in_place{{value, sizeof *value, OFFPATH_INOUT}};
        const auto several = [&](int count) {
            std::vector<offpath_request_h> requests;
            for (int i = 0; i < count; ++i)
                requests.push_back(start(step, std::uint64_t{1}, in_place));
            return requests;
        };
        std::vector<offpath_request_h> done = several(3);
        done.push_back(start(sleeper, 1, {}));
        offpath_request_h running = start(sleeper, 60000, {});
        std::vector<offpath_request_h> behind = several(9);
        for (int i = 0; i < 1000 && offpath_request_test(done.back()) == OFFPATH_IN_PROGRESS; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        *static_cast<volatile int*>(me.shared) = 1;
        for (offpath_request_h request : behind)
            expect(finish(request), OFFPATH_ERR_CANCELED, "behind");
        expect(finish(running), OFFPATH_ERR_CANCELED, "running");
        for (offpath_request_h request : done)
            expect(finish(request), OFFPATH_OK, "done");
        require(*value == 13, "three steps");
        for (offpath_request_h request : several(5))
            expect(finish(request), OFFPATH_OK, "by another process");
        require(*value == 3280, "eight steps");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    for (int i = 0; i < 4000 && *static_cast<volatile int*>(job.shared()) == 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const pid_t host = host_process(daemon);
    ASSERT_GT(host, 0) << daemon.log();
    kill(host, SIGKILL);
    EXPECT_EQ(job.wait(), std::vector<int>{0});
    EXPECT_TRUE(daemon.running());
}

// A kernel that crashes ends itself and all kernels that its process already had.
TEST_P(KernelsAhead, AreCanceledByACrash) {
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_kernel_h sleeper = load(context, "test_sleep"), result = load(context, "test_result"),
                         crash = load(context, "test_crash");
        for (int before = 0; before < 6; ++before) {
            std::vector<offpath_request_h> requests{start(sleeper, 20, {})};
            for (int i = 0; i < before; ++i)
                requests.push_back(start(result, i % 2 == 0 ? 0 : -5, {}));
            requests.push_back(start(crash, 0, {}));
            for (int i = 0; i < 8; ++i)
                requests.push_back(start(result, 0, {}));
            expect(finish(requests[0]), OFFPATH_OK, "the first");
            for (int i = 0; i < before; ++i)
                expect(finish(requests[static_cast<std::size_t>(i) + 1]),
                       i % 2 == 0 ? OFFPATH_OK : OFFPATH_ERR_MEMORY, "before it");
            for (std::size_t i = static_cast<std::size_t>(before) + 1; i < requests.size(); ++i)
                expect(finish(requests[i]), OFFPATH_ERR_CANCELED, "it, and behind it");
            expect(run(result, 0, {}), OFFPATH_OK, "later");
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
    EXPECT_TRUE(daemon.running());
}

}  // namespace
}  // namespace offpath::test
