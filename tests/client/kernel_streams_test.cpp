// Streams of kernels, which run side by side, and the limit of a kernel's time.
#include "back_end_fixture.h"
#include "kernel_calls.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace offpath::test {
namespace {

class KernelStreams : public BackEndTest {};
INSTANTIATE_TEST_SUITE_P(BackEnds, KernelStreams, testing::Values("auto", "staged"));

offpath_kernel_h load_in(offpath_context_h context, std::uint32_t stream, const char* symbol) {
    offpath_kernel_h kernel = nullptr;
    expect(offpath_kernel_load_in(context, OFFPATH_TEST_KERNELS, symbol, stream, &kernel), OFFPATH_OK,
           symbol);
    return kernel;
}

// Paths for two kernels that wait for each other.
std::string meeting(const std::string& path, int mine) {
    return path + std::to_string(mine) + " " + path + std::to_string(1 - mine);
}

TEST_P(KernelStreams, RunSideBySide) {
    EXPECT_TRUE(all_right(1, directory.path(), [&](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_request_h requests[2] = {};
        for (int i = 0; i < 2; ++i) {
            const std::string arguments = meeting(directory.path() + "/request", i);
            expect(offpath_compute(load_in(context, i == 0 ? 0 : OFFPATH_KERNEL_STREAMS - 1, "test_meet"),
                                   arguments.data(), arguments.size(), nullptr, 0, &requests[i]),
                   OFFPATH_OK, "compute");
        }
        for (offpath_request_h request : requests)
            expect(finish(request), OFFPATH_OK, "both run at a time");
        offpath_group_h group = nullptr;
        expect(offpath_group_create(me.world(context), &group), OFFPATH_OK, "create");
        for (int i = 0; i < 2; ++i) {
            const std::string arguments = meeting(directory.path() + "/group", i);
            expect(
                offpath_group_compute(group, load_in(context, 1 + static_cast<std::uint32_t>(i), "test_meet"),
                                      arguments.data(), arguments.size(), nullptr, 0),
                OFFPATH_OK, "record");
        }
        expect(offpath_group_end(group), OFFPATH_OK, "end");
        expect(offpath_group_start(group), OFFPATH_OK, "start");
        expect(offpath_group_wait(group), OFFPATH_OK, "both run at a time");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// Each stream has its own libraries, and keeps its own order.
TEST_P(KernelStreams, ShareNothingButMemory) {
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        constexpr std::uint32_t streams = 3;
        void* memory = nullptr;
        expect(offpath_mem_alloc(context, streams * sizeof(std::uint64_t), &memory), OFFPATH_OK, "alloc");
        auto* mapped = static_cast<std::uint64_t*>(memory);
        std::uint64_t ordinary[streams] = {}, wanted[streams] = {};
        std::fill(mapped, mapped + streams, 0);
        std::vector<offpath_kernel_h> steps;
        for (std::uint32_t stream = 0; stream < streams; ++stream) {
            int calls = 0;
            expect(
                run(load_in(context, stream, "test_count_calls"), 0, {{&calls, sizeof calls, OFFPATH_OUT}}),
                OFFPATH_OK, "count");
            require(calls == 1, "the first call in this stream");
            steps.push_back(load_in(context, stream, "test_step"));
        }
        std::vector<offpath_request_h> requests;
        for (std::uint64_t round = 0; round < 50; ++round) {
            for (std::uint32_t stream = 0; stream < streams; ++stream) {
                const std::uint64_t add = 10 * stream + round;
                requests.push_back(start(steps[stream], add, {{&ordinary[stream], 8, OFFPATH_INOUT}}));
                requests.push_back(start(steps[stream], add, {{&mapped[stream], 8, OFFPATH_INOUT}}));
                wanted[stream] = 3 * wanted[stream] + add;
            }
        }
        for (offpath_request_h request : requests)
            expect(finish(request), OFFPATH_OK, "step");
        for (std::uint32_t stream = 0; stream < streams; ++stream)
            require(ordinary[stream] == wanted[stream] && mapped[stream] == wanted[stream], "values");
        expect(offpath_mem_free(context, memory), OFFPATH_OK, "free");
        for (offpath_kernel_h step : steps)
            expect(offpath_kernel_unload(step), OFFPATH_OK, "unload");
        offpath_kernel_h none = nullptr;
        expect(
            offpath_kernel_load_in(context, OFFPATH_TEST_KERNELS, "test_step", OFFPATH_KERNEL_STREAMS, &none),
            OFFPATH_ERR_INVALID, "a stream that does not exist");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// A kernel behind the crash ends with it, one of another stream does not.
TEST_P(KernelStreams, CrashAlone) {
    EXPECT_TRUE(all_right(1, directory.path(), [&](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_kernel_h meet = load_in(context, 0, "test_meet"), first = load_in(context, 1, "test_meet"),
                         crash = load_in(context, 1, "test_crash"),
                         behind = load_in(context, 1, "test_result"), last = load_in(context, 2, "test_meet");
        const auto begin = [](offpath_kernel_h kernel, const std::string& with) {
            offpath_request_h begun = nullptr;
            expect(offpath_compute(kernel, with.data(), with.size(), nullptr, 0, &begun), OFFPATH_OK, "meet");
            return begun;
        };
        const std::string alone = meeting(directory.path() + "/crash", 0);
        offpath_request_h other = begin(meet, alone);
        // The crash waits until the kernel behind it has been started, too.
        const std::string waits = meeting(directory.path() + "/first", 0),
                          releases = meeting(directory.path() + "/first", 1);
        offpath_request_h before = begin(first, waits);
        offpath_request_h crashed = start(crash, 0, {}), canceled = start(behind, 0, {});
        expect(finish(begin(last, releases)), OFFPATH_OK, "released");
        expect(finish(before), OFFPATH_OK, "before it");
        expect(finish(crashed), OFFPATH_ERR_CANCELED, "the crash");
        expect(finish(canceled), OFFPATH_ERR_CANCELED, "behind it");
        // The other one has run all the time.
        expect(offpath_request_test(other), OFFPATH_IN_PROGRESS, "meanwhile");
        const std::string meets = meeting(directory.path() + "/crash", 1);
        expect(finish(begin(last, meets)), OFFPATH_OK, "met");
        expect(finish(other), OFFPATH_OK, "met");
        expect(run(behind, 0, {}), OFFPATH_OK, "a new process");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
    EXPECT_TRUE(daemon.running());
}

// What both ways of setting a limit do.
void end_what_is_endless(const Rank& me) {
    offpath_context_h context = me.init();
    offpath_kernel_h endless = load_in(context, 0, "test_endless"),
                     result = load_in(context, 0, "test_result");
    for (int i = 0; i < 2; ++i) {
        // The limit counts from the kernel's own start, and ends those behind it.
        offpath_request_h running = start(endless, 0, {}), behind = start(result, 0, {});
        expect(finish(running), OFFPATH_ERR_CANCELED, "the endless one");
        expect(finish(behind), OFFPATH_ERR_CANCELED, "behind it");
        char text[OFFPATH_KERNEL_ERROR_BYTES];
        expect(offpath_kernel_last_error(context, text, sizeof text), OFFPATH_OK, "last error");
        require(std::string(text) == "kernel test_endless: it did not end within 1 s and was killed", text);
        expect(run(result, 0, {}), OFFPATH_OK, "a new process");
    }
    expect(offpath_finalize(context), OFFPATH_OK, "finalize");
}

TEST_P(KernelStreams, HaveTheProgramsLimitOfTime) {
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        setenv("OFFPATH_KERNEL_SECONDS", "1", 1);
        end_what_is_endless(me);
    }));
    EXPECT_TRUE(daemon.running());
}

TEST(KernelLimits, HaveADefaultOfTheDaemon) {
    TemporaryDirectory directory;
    DaemonProcess daemon{directory.path(), {"--kernel-seconds", "1"}};
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(1, directory.path(), end_what_is_endless));
    EXPECT_TRUE(daemon.running());
}

TEST(KernelLimits, AreWholeSeconds) {
    TemporaryDirectory directory;
    DaemonProcess daemon{directory.path()};
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        setenv("OFFPATH_KERNEL_SECONDS", "soon", 1);
        offpath_kernel_h kernel = nullptr;
        expect(offpath_kernel_load(context, OFFPATH_TEST_KERNELS, "test_step", &kernel), OFFPATH_ERR_INVALID,
               "an unusable setting");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

}  // namespace
}  // namespace offpath::test
