// Groups with kernels, on real daemons: kernels and messages that depend on each other, and their errors.
#include "back_end_fixture.h"
#include "kernel_calls.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdint>
#include <vector>

namespace offpath::test {
namespace {

class GroupCompute : public BackEndTest {};
INSTANTIATE_TEST_SUITE_P(BackEnds, GroupCompute, testing::Values("auto", "staged"));

void record_step(offpath_group_h group, offpath_kernel_h kernel, std::uint64_t add, std::uint64_t* values,
                 std::size_t bytes) {
    const offpath_kernel_buffer_t buffer{values, bytes, OFFPATH_INOUT};
    expect(offpath_group_compute(group, kernel, &add, sizeof add, &buffer, 1), OFFPATH_OK, "record a kernel");
}

// Each rank runs a kernel, sends to the right, receives from the left, and runs a kernel on what came. One
// start is one round.
TEST_P(GroupCompute, KernelsAndMessagesDependOnEachOther) {
    EXPECT_TRUE(all_right(3, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        offpath_kernel_h step = load(context, "test_step");
        for (const std::size_t n : {std::size_t{3}, std::size_t{40000}}) {
            for (const bool mapped : {false, true}) {
                std::vector<std::uint64_t> ordinary(2 * n);
                void* memory = nullptr;
                expect(offpath_mem_alloc(context, 2 * n * 8, &memory), OFFPATH_OK, "alloc");
                std::uint64_t* own = mapped ? static_cast<std::uint64_t*>(memory) : ordinary.data();
                std::uint64_t* arrived = own + n;
                offpath_group_h group = nullptr;
                expect(offpath_group_create(world, &group), OFFPATH_OK, "create");
                // The recording order is wrong. Only the dependencies correct it.
                expect(offpath_group_recv(group, arrived, n * 8, (me.rank + 2) % 3, 7), OFFPATH_OK, "recv");
                record_step(group, step, 5, own, n * 8);
                expect(offpath_group_send(group, own, n * 8, (me.rank + 1) % 3, 7), OFFPATH_OK, "send");
                record_step(group, step, 11, arrived, n * 8);
                expect(offpath_group_depend(group, 2, 1), OFFPATH_OK, "send after kernel");
                expect(offpath_group_depend(group, 3, 0), OFFPATH_OK, "kernel after receive");
                expect(offpath_group_end(group), OFFPATH_OK, "end");
                for (std::uint64_t round = 0; round < 20; ++round) {
                    for (std::size_t i = 0; i < n; ++i) {
                        own[i] = 1000 * me.rank + i + round;
                        arrived[i] = 0;
                    }
                    expect(offpath_group_start(group), OFFPATH_OK, "start");
                    expect(offpath_group_wait(group), OFFPATH_OK, "wait");
                    for (std::size_t i = 0; i < n; ++i)
                        require(arrived[i] == 3 * (3 * (1000 * ((me.rank + 2) % 3) + i + round) + 5) + 11,
                                "element " + std::to_string(i) + " of round " + std::to_string(round));
                }
                expect(offpath_group_destroy(group), OFFPATH_OK, "destroy");
                expect(offpath_mem_free(context, memory), OFFPATH_OK, "free");
            }
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

// A crash ends the start on all ranks, and the log names the kernel and the signal. The group can be started
// again.
TEST_P(GroupCompute, ACrashEndsTheStartOnAllRanks) {
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        std::uint64_t value = 1;
        offpath_group_h bad = nullptr, good = nullptr;
        for (offpath_group_h* group : {&bad, &good}) {
            expect(offpath_group_create(world, group), OFFPATH_OK, "create");
            if (me.rank == 0) {
                offpath_kernel_h kernel = load(context, group == &bad ? "test_crash" : "test_step");
                record_step(*group, kernel, 1, &value, sizeof value);
                expect(offpath_group_send(*group, &value, sizeof value, 1, 0), OFFPATH_OK, "send");
                expect(offpath_group_depend(*group, 1, 0), OFFPATH_OK, "depend");
            } else {
                expect(offpath_group_recv(*group, &value, sizeof value, 0, 0), OFFPATH_OK, "recv");
            }
            expect(offpath_group_end(*group), OFFPATH_OK, "end");
        }
        for (int round = 0; round < 3; ++round) {
            expect(offpath_group_start(bad), OFFPATH_OK, "start");
            expect(offpath_group_wait(bad), OFFPATH_ERR_CANCELED, "the crash");
            value = 1;
            expect(offpath_group_start(good), OFFPATH_OK, "start");
            expect(offpath_group_wait(good), OFFPATH_OK, "after the crash");
            require(value == 4, "the value after the crash");
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
    EXPECT_NE(daemon.log().find("(test_crash) ends with an error: the process that runs it ended: signal 11"),
              std::string::npos)
        << daemon.log();
    EXPECT_TRUE(daemon.running());
}

TEST_P(GroupCompute, SaysWhatIsWrong) {
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_kernel_h step = load(context, "test_step"), result = load(context, "test_result");
        offpath_group_h group = nullptr;
        std::uint64_t value = 0;
        expect(offpath_group_create(me.world(context), &group), OFFPATH_OK, "create");
        offpath_kernel_buffer_t buffer{&value, sizeof value, static_cast<offpath_access_t>(9)};
        expect(offpath_group_compute(group, step, nullptr, 0, &buffer, 1), OFFPATH_ERR_INVALID, "access");
        expect(offpath_group_compute(group, nullptr, nullptr, 0, nullptr, 0), OFFPATH_ERR_INVALID, "kernel");
        expect(offpath_group_compute(group, step, nullptr, OFFPATH_KERNEL_ARGUMENT_BYTES + 1, nullptr, 0),
               OFFPATH_ERR_INVALID, "arguments");
        const int refused = OFFPATH_ERR_MEMORY;
        expect(offpath_group_compute(group, result, &refused, sizeof refused, nullptr, 0), OFFPATH_OK,
               "record");
        expect(offpath_group_depend(group, 0, 0), OFFPATH_ERR_INVALID, "on itself");
        expect(offpath_group_depend(group, 1, 0), OFFPATH_ERR_INVALID, "a step that is not recorded");
        expect(offpath_group_end(group), OFFPATH_OK, "end");
        expect(offpath_group_depend(group, 0, 0), OFFPATH_ERR_INVALID, "after the end");
        expect(offpath_group_compute(group, step, nullptr, 0, nullptr, 0), OFFPATH_ERR_INVALID,
               "after the end");
        expect(offpath_group_start(group), OFFPATH_OK, "start");
        expect(offpath_group_wait(group), OFFPATH_ERR_MEMORY, "what the kernel returned");
        // The kernel has been unloaded.
        expect(offpath_kernel_unload(result), OFFPATH_OK, "unload");
        expect(offpath_group_start(group), OFFPATH_OK, "start");
        expect(offpath_group_wait(group), OFFPATH_ERR_INVALID, "an unloaded kernel");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
    EXPECT_TRUE(daemon.running());
}

// When a rank dies, the start of the other rank ends, although its kernel has not returned yet.
TEST_P(GroupCompute, EndsWhenAPeerDies) {
    Job job(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_kernel_h sleeper = load(context, "test_sleep");
        offpath_group_h group = nullptr;
        expect(offpath_group_create(me.world(context), &group), OFFPATH_OK, "create");
        const int milliseconds = me.rank == 0 ? 600 : 60000;
        char byte = 0;
        expect(offpath_group_compute(group, sleeper, &milliseconds, sizeof milliseconds, nullptr, 0),
               OFFPATH_OK, "kernel");
        expect(me.rank == 0 ? offpath_group_recv(group, &byte, 1, 1, 0)
                            : offpath_group_send(group, &byte, 1, 0, 0),
               OFFPATH_OK, "message");
        if (me.rank == 1) expect(offpath_group_depend(group, 1, 0), OFFPATH_OK, "depend");
        expect(offpath_group_end(group), OFFPATH_OK, "end");
        expect(offpath_group_start(group), OFFPATH_OK, "start");
        if (me.rank == 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            kill(getpid(), SIGKILL);
        }
        expect(offpath_group_wait(group), OFFPATH_ERR_PEER_LOST, "the peer's death");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    EXPECT_EQ(job.wait(20), (std::vector<int>{0, -1})) << daemon.log();
    EXPECT_TRUE(daemon.running());
}

TEST_P(GroupCompute, EndsWithItsClient) {
    Job job(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_kernel_h sleeper = load(context, "test_sleep");
        offpath_group_h group = nullptr;
        expect(offpath_group_create(me.world(context), &group), OFFPATH_OK, "create");
        const int milliseconds = 60000;
        for (int i = 0; i < 2; ++i)
            expect(offpath_group_compute(group, sleeper, &milliseconds, sizeof milliseconds, nullptr, 0),
                   OFFPATH_OK, "kernel");
        expect(offpath_group_end(group), OFFPATH_OK, "end");
        expect(offpath_group_start(group), OFFPATH_OK, "start");
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        kill(getpid(), SIGKILL);
    });
    EXPECT_EQ(job.wait(20), std::vector<int>{-1});
    const pid_t host = host_process(daemon);
    ASSERT_GT(host, 0) << daemon.log();
    EXPECT_TRUE(goes(host)) << daemon.log();
    EXPECT_TRUE(daemon.running());
}

}  // namespace
}  // namespace offpath::test
