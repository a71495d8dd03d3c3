// A device that is stopped (SIGSTOP): its ranks detect it within the limit. When it continues, it touches
// nothing of the ranks that have given it up.
#include "direct_fixture.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

namespace offpath::test {
namespace {

// The limit is 1 s (OFFPATH_LOST_AFTER_S).
constexpr double patience_s = 30;

std::vector<pid_t> threads_of(pid_t process) {
    std::vector<pid_t> found;
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task"))
        found.push_back(std::stoi(entry.path().filename()));
    return found;
}

// The rank waits or tests, and its ordinary memory is reached by cma or staged.
struct Way {
    bool by_test;
    const char* back_end;
};
class Stopped : public testing::TestWithParam<Way> {
  protected:
    void SetUp() override { setenv("OFFPATH_LOST_AFTER_S", "1", 1); }
    void TearDown() override { unsetenv("OFFPATH_LOST_AFTER_S"); }
};
INSTANTIATE_TEST_SUITE_P(By, Stopped,
                         testing::Values(Way{false, "auto"}, Way{true, "auto"}, Way{false, "staged"}),
                         [](const auto& way) {
                             return std::string(way.param.by_test ? "Test" : "Wait") + "_" +
                                    way.param.back_end;
                         });

TEST_P(Stopped, DaemonIsToldAndTouchesNothingWhenItGoesOn) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    Job job(3, directory.path(), [&](const Rank& me) {
        setenv("OFFPATH_BACK_END", GetParam().back_end, 1);
        auto* const shared = static_cast<std::atomic<std::uint32_t>*>(me.shared);
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        const std::size_t each = 200'000;
        std::vector<char> out(me.size * each, 'o'), in(me.size * each);
        offpath_status_t status = OFFPATH_OK;
        while (status == OFFPATH_OK) {
            offpath_request_h request = nullptr;
            status = offpath_ialltoall(world, out.data(), in.data(), each, &request);
            if (status != OFFPATH_OK) break;
            if (GetParam().by_test) {
                while ((status = offpath_request_test(request)) == OFFPATH_IN_PROGRESS)
                    std::this_thread::yield();
            } else {
                status = offpath_request_wait(request);
            }
            offpath_request_free(request);
            shared->fetch_add(1);
        }
        expect(status, OFFPATH_ERR_PEER_LOST, "the end of the job");
        // The program may use the buffer again.
        std::fill(in.begin(), in.end(), 'm');
        shared[1].fetch_add(1);
        while (shared[2].load() == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        require(std::all_of(in.begin(), in.end(), [](char c) { return c == 'm'; }), "nothing was written");
        void* memory = nullptr;
        require(offpath_mem_alloc(context, 4096, &memory) != OFFPATH_IN_PROGRESS, "calls return");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    wait_until_started(job);
    auto* const shared = static_cast<std::atomic<std::uint32_t>*>(job.shared());
    const double stopped = now();
    daemon.signal(SIGSTOP);
    while (shared[1].load() < 3 && now() - stopped < patience_s)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(shared[1].load(), 3u);
    daemon.signal(SIGCONT);
    const double give_up = now() + patience_s;
    while (daemon.log().find("has given this device up") == std::string::npos && now() < give_up)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_LT(now(), give_up) << daemon.log();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    shared[2] = 1;
    EXPECT_EQ(job.wait(60), zeros(3));
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        expect(offpath_finalize(me.init()), OFFPATH_OK, "a job afterwards");
    }));
}

// Questions to the daemon end as well.
TEST_P(Stopped, DaemonEndsQuestionsToIt) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    Job job(1, directory.path(), [&](const Rank& me) {
        offpath_context_h context = me.init();
        kill(daemon.pid(), SIGSTOP);
        const double begin = now();
        void* memory = nullptr;
        (void)offpath_mem_alloc(context, 1 << 20, &memory);
        require(now() - begin < patience_s, "mem_alloc ends");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    EXPECT_EQ(job.wait(60), zeros(1));
    daemon.signal(SIGCONT);
}

// Two nodes are joined by TCP. The device of one is stopped, and the ranks of the other only receive, so
// nothing of theirs waits in a connection. Both sides notice it. So does the stopped device when it
// continues.
TEST(StoppedElsewhere, DaemonIsToldToThoseWhoOnlyReceive) {
    if (geteuid() != 0) GTEST_SKIP() << "host names need root";
    setenv("OFFPATH_LOST_AFTER_S", "1", 1);
    setenv("UCX_TLS", "tcp,self", 1);
    TemporaryDirectory directory;
    DaemonProcess one(directory.path(), {}, "node-one"), two(directory.path(), {}, "node-two");
    ASSERT_TRUE(one.ready()) << one.log();
    ASSERT_TRUE(two.ready()) << two.log();
    Job job(2, directory.path(), [&](const Rank& me) {
        require(become_host(me.rank == 0 ? "node-one" : "node-two"), "host name");
        auto* const shared = static_cast<std::atomic<std::uint32_t>*>(me.shared);
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        std::vector<char> buffer(300'000);
        offpath_status_t status = OFFPATH_OK;
        // Ten messages arrive. The next one never comes.
        for (std::uint32_t i = 0; status == OFFPATH_OK && i <= 10; ++i) {
            if (me.rank == 1 && i == 10) break;
            offpath_request_h request = nullptr;
            expect(me.rank == 0 ? offpath_recv_offload(world, buffer.data(), buffer.size(), 1, i, &request)
                                : offpath_send_offload(world, buffer.data(), buffer.size(), 0, i, &request),
                   OFFPATH_OK, "start");
            if (i == 10) shared[3] = 1;
            status = offpath_request_wait(request);
            offpath_request_free(request);
            shared->fetch_add(1);
        }
        if (me.rank == 0) expect(status, OFFPATH_ERR_PEER_LOST, "the receive");
        shared[1].fetch_add(1);
        while (shared[2].load() == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        // The device of rank 1 continues. The connection between the devices is given up on both sides.
        if (me.rank == 1) {
            offpath_request_h request = nullptr;
            status = offpath_recv_offload(world, buffer.data(), buffer.size(), 0, 99, &request);
            if (status == OFFPATH_OK) {
                status = offpath_request_wait(request);
                offpath_request_free(request);
            }
            expect(status, OFFPATH_ERR_PEER_LOST, "a receive from the other side");
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    auto* const shared = static_cast<std::atomic<std::uint32_t>*>(job.shared());
    for (const double give_up = now() + 60; (shared[0] < 20 || shared[3] == 0) && now() < give_up;)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_TRUE(shared[0] == 20 && shared[3] == 1) << one.log() << two.log();
    // Time for the last receive to reach the other device, so that nothing waits in a connection.
    std::this_thread::sleep_for(std::chrono::milliseconds(2000));
    two.signal(SIGSTOP);
    const double stopped = now();
    while (shared[1].load() < 2 && now() - stopped < patience_s)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(shared[1].load(), 2u);
    EXPECT_NE(one.log().find("no answer for"), std::string::npos) << one.log();
    two.signal(SIGCONT);
    shared[2] = 1;
    EXPECT_EQ(job.wait(60), zeros(2));
    unsetenv("OFFPATH_LOST_AFTER_S");
    unsetenv("UCX_TLS");
}

// Direct requests of its ranks' peers to the stopped device end too.
TEST(StoppedElsewhere, DaemonEndsWhatWasAskedDirectly) {
    if (geteuid() != 0) GTEST_SKIP() << "host names need root";
    if (remote_mode()) GTEST_SKIP() << "ranks with a device of its own system have no direct paths";
    setenv("OFFPATH_LOST_AFTER_S", "1", 1);
    setenv("UCX_TLS", "tcp,self", 1);
    TemporaryDirectory directory;
    DaemonProcess one(directory.path(), {"--direct", "on"}, "node-one");
    DaemonProcess two(directory.path(), {"--direct", "on"}, "node-two");
    ASSERT_TRUE(one.ready()) << one.log();
    ASSERT_TRUE(two.ready()) << two.log();
    Job job(2, directory.path(), [&](const Rank& me) {
        require(become_host(me.rank == 0 ? "node-one" : "node-two"), "host name");
        Fixture f(me);
        if (me.rank == 0) {
            f.open(1);
            stop(two.pid());
            const double stopped = now();
            std::uint64_t word = 0;
            expect(offpath_direct_get(f.window, &word, sizeof word, 1, 0), OFFPATH_ERR_PEER_LOST, "get");
            require(now() - stopped < patience_s, "it takes long to notice");
        }
        me.barrier();
        _exit(0);
    });
    EXPECT_EQ(job.wait(60), zeros(2));
    two.signal(SIGCONT);
    unsetenv("OFFPATH_LOST_AFTER_S");
    unsetenv("UCX_TLS");
}

// A pause in a debugger that is longer than the limit does no harm. Neither does a long wait.
TEST(StoppedByADebugger, DaemonIsNotLost) {
    setenv("OFFPATH_LOST_AFTER_S", "1", 1);
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    Job job(2, directory.path(), [&](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        auto* const shared = static_cast<std::atomic<std::uint32_t>*>(me.shared);
        std::vector<char> out(2000), in(2000);
        for (int i = 0; i < 2; ++i) {
            if (me.rank == 1) {
                if (i == 1) ++*shared;
                while (shared[1].load() < static_cast<std::uint32_t>(i))
                    std::this_thread::sleep_for(std::chrono::milliseconds(5));
                std::this_thread::sleep_for(std::chrono::milliseconds(2500));
            }
            offpath_request_h request = nullptr;
            expect(offpath_ialltoall(world, out.data(), in.data(), 1000, &request), OFFPATH_OK, "start");
            expect(offpath_request_wait(request), OFFPATH_OK, "wait");
            offpath_request_free(request);
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    wait_until_started(job, 1);  // the first round is over
    auto* const shared = static_cast<std::atomic<std::uint32_t>*>(job.shared());
    // All threads are stopped, as a debugger does it.
    std::vector<pid_t> held;
    for (const pid_t thread : threads_of(daemon.pid())) {
        if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) == 0 &&
            ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0)
            held.push_back(thread);
    }
    for (const pid_t thread : held)
        waitpid(thread, nullptr, __WALL);
    shared[1] = 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(3500));
    for (const pid_t thread : held)
        ptrace(PTRACE_DETACH, thread, nullptr, nullptr);
    EXPECT_EQ(job.wait(60), zeros(2));
    unsetenv("OFFPATH_LOST_AFTER_S");
    if (held.empty()) GTEST_SKIP() << "ptrace is not allowed here";
}

}  // namespace
}  // namespace offpath::test
