// The daemon's life: start, refusal of a second one, stale files, signals, idling, start by a rank.
#include "client/attach.h"
#include "control/socket.h"
#include "harness.h"

#include <gtest/gtest.h>

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

namespace offpath::test {
namespace {

bool has(const TemporaryDirectory& directory, const std::string& suffix) {
    const auto files = directory.files();
    return std::any_of(files.begin(), files.end(),
                       [&](const std::string& name) { return name.ends_with(suffix); });
}

void short_job(const Rank& me) {
    offpath_context_h context = me.init();
    std::vector<std::uint32_t> all(me.size);
    offpath_request_h request = nullptr;
    expect(offpath_iallgather(me.world(context), &me.rank, all.data(), 4, &request), OFFPATH_OK, "start");
    expect(offpath_request_wait(request), OFFPATH_OK, "wait");
    for (std::uint32_t i = 0; i < me.size; ++i)
        require(all[i] == i, "data");
    expect(offpath_finalize(context), OFFPATH_OK, "finalize");
}

TEST(Lifecycle, LeavesNothingAfterSigterm) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(has(directory, ".sock"));
    EXPECT_TRUE(has(directory, ".pid"));
    daemon.signal(SIGTERM);
    EXPECT_EQ(daemon.wait(), 0);
    EXPECT_FALSE(has(directory, ".sock"));
    EXPECT_FALSE(has(directory, ".pid"));
}

TEST(Lifecycle, TellsItsClientsWhenItIsStopped) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    Job job(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        int word = 0;
        offpath_request_h request = nullptr;
        expect(offpath_recv_offload(me.world(context), &word, 4, OFFPATH_ANY_SOURCE, 0, &request), OFFPATH_OK,
               "recv");
        static_cast<std::atomic<std::uint32_t>*>(me.shared)->fetch_add(1);
        expect(offpath_request_wait(request), OFFPATH_ERR_PEER_LOST, "wait");
        // Operations that are started afterwards fail too, at the start or at the wait.
        offpath_status_t status = offpath_ibarrier(me.world(context), &request);
        if (status == OFFPATH_OK) status = offpath_request_wait(request);
        expect(status, OFFPATH_ERR_PEER_LOST, "barrier afterwards");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    while (static_cast<std::atomic<std::uint32_t>*>(job.shared())->load() < 2)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    daemon.signal(SIGTERM);
    EXPECT_EQ(daemon.wait(), 0);
    EXPECT_EQ(job.wait(10), std::vector<int>({0, 0}));
}

TEST(Lifecycle, RefusesASecondDaemonAndReplacesADeadOne) {
    TemporaryDirectory directory;
    DaemonProcess first(directory.path());
    ASSERT_TRUE(first.ready()) << first.log();
    {
        DaemonProcess second(directory.path());
        EXPECT_FALSE(second.ready());
        EXPECT_EQ(second.wait(), 1);
        EXPECT_NE(second.log().find("another offpathd (pid " + std::to_string(first.pid()) + ")"),
                  std::string::npos)
            << second.log();
    }
    EXPECT_TRUE(all_right(2, directory.path(), short_job)) << "the first one goes on";
    first.signal(SIGKILL);
    EXPECT_EQ(first.wait(), -1);
    EXPECT_TRUE(has(directory, ".sock")) << "a killed daemon cannot clean up";
    DaemonProcess third(directory.path());
    EXPECT_TRUE(third.ready()) << third.log();
    EXPECT_TRUE(all_right(2, directory.path(), short_job));
}

TEST(Lifecycle, EndsWhenIdle) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path(), {"--idle-exit", "3"});
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        std::this_thread::sleep_for(std::chrono::milliseconds(4500));
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
    EXPECT_EQ(daemon.wait(30), 0);
    EXPECT_FALSE(has(directory, ".sock"));
}

// The daemon comes to rest. One that looks for work without sleeping never has two such seconds.
TEST(Lifecycle, UsesNoCpuWhenIdle) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path(), {"--proxies", "2"});
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    Job job(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_request_h request = nullptr;
        expect(offpath_ibarrier(me.world(context), &request), OFFPATH_OK, "start");
        expect(offpath_request_wait(request), OFFPATH_OK, "wait");
        auto* const shared = static_cast<std::atomic<std::uint32_t>*>(me.shared);
        shared->fetch_add(1);
        while (shared[1] == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    wait_until_started(job, 2);
    double used = 1;
    for (const double give_up = now() + 30; used > 0.02 && now() < give_up;) {
        const double before = daemon.cpu_seconds();
        std::this_thread::sleep_for(std::chrono::milliseconds(2000));
        used = daemon.cpu_seconds() - before;
    }
    EXPECT_LE(used, 0.02) << "1 % of 2 s";
    static_cast<std::atomic<std::uint32_t>*>(job.shared())[1] = 1;
    EXPECT_EQ(job.wait(), zeros(2));
}

TEST(Lifecycle, HoldsNothingOfClientsThatAreGone) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    ASSERT_TRUE(all_right(2, directory.path(), short_job));
    const std::size_t before = daemon.descriptors();
    for (int i = 0; i < 10; ++i)
        ASSERT_TRUE(all_right(2, directory.path(), short_job));
    EXPECT_LE(daemon.descriptors(), before);
}

std::size_t resident_bytes(pid_t pid) {
    std::size_t all = 0, resident = 0;
    std::ifstream("/proc/" + std::to_string(pid) + "/statm") >> all >> resident;
    return resident * 4096;
}

// A large client does not leave the daemon large.
TEST(Lifecycle, GivesMemoryBack) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer's allocator does not return";
#endif
    TemporaryDirectory directory;
    DaemonProcess daemon{directory.path()};
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    const std::size_t before = resident_bytes(daemon.pid());
    Job job(1, directory.path(), [](const Rank& me) {
        constexpr std::uint32_t pieces = 10'000;
        offpath_context_h context = me.init();
        std::vector<std::uint64_t> out(pieces, 7), in(pieces);
        std::vector<offpath_group_h> groups(8);
        for (offpath_group_h& group : groups) {
            expect(offpath_group_create(me.world(context), &group), OFFPATH_OK, "create");
            for (std::uint32_t i = 0; i < pieces; ++i) {
                expect(offpath_group_send(group, &out[i], 8, 0, i), OFFPATH_OK, "send");
                expect(offpath_group_recv(group, &in[i], 8, 0, i), OFFPATH_OK, "recv");
            }
            expect(offpath_group_end(group), OFFPATH_OK, "end");
        }
        expect(offpath_group_start(groups[0]), OFFPATH_OK, "start");
        expect(offpath_group_wait(groups[0]), OFFPATH_OK, "wait");
        require(in == out, "data");
        static_cast<std::atomic<int>*>(me.shared)->store(1);
        while (static_cast<std::atomic<int>*>(me.shared)->load() == 1)
            usleep(1000);
        for (offpath_group_h group : groups)
            expect(offpath_group_destroy(group), OFFPATH_OK, "destroy");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    auto& step = *static_cast<std::atomic<int>*>(job.shared());
    for (const double give_up = now() + 100; step.load() == 0 && now() < give_up;)
        usleep(1000);
    ASSERT_EQ(step.load(), 1);
    const std::size_t most = resident_bytes(daemon.pid());
    step = 2;
    EXPECT_EQ(job.wait(), std::vector<int>{0});
    ASSERT_GT(most, before + (20 << 20)) << "the client was not large";
    std::size_t after = most;
    for (const double give_up = now() + 30; after > before + (most - before) / 4 && now() < give_up;) {
        usleep(10000);
        after = resident_bytes(daemon.pid());
    }
    EXPECT_LE(after, before + (most - before) / 4) << "of " << most << " bytes, " << before << " before";
}

std::string content(pid_t pid, const char* name) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// With the allocator's caches a daemon grows from job to job, for hours.
TEST(Lifecycle, RunsWithoutTheAllocatorsCachesUnderItsName) {
    TemporaryDirectory directory;
    DaemonProcess daemon{directory.path()};
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    const std::string environment = content(daemon.pid(), "environ");
    EXPECT_NE(environment.find("glibc.malloc.tcache_count=0"), std::string::npos);
    EXPECT_EQ(content(daemon.pid(), "comm"), "offpathd\n");
}

TEST(Lifecycle, IsStartedByTheFirstRank) {
    TemporaryDirectory directory;
    setenv("OFFPATH_AUTOSTART", "1", 1);
    setenv("OFFPATH_DAEMON", OFFPATHD, 1);
    setenv("OFFPATH_IDLE_EXIT", "1", 1);
    EXPECT_TRUE(all_right(3, directory.path(), short_job));
    EXPECT_TRUE(all_right(3, directory.path(), short_job)) << "again, with the daemon that is there";
    const double give_up = now() + 30;
    while (has(directory, ".pid") && now() < give_up)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(has(directory, ".pid")) << "it ends itself";
    EXPECT_FALSE(has(directory, ".sock"));
    setenv("OFFPATH_DAEMON", "/nonexistent/offpathd", 1);
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = nullptr;
        expect(me.try_init(&context), OFFPATH_ERR_UNAVAILABLE, "init");
    }));
    unsetenv("OFFPATH_AUTOSTART");
    unsetenv("OFFPATH_DAEMON");
    unsetenv("OFFPATH_IDLE_EXIT");
}

// They would copy all memory that the program shares with a device, only for a child that becomes a daemon.
TEST(Lifecycle, StartsADaemonWithoutTheHandlersOfFork) {
    static int handlers_called = 0;
    pthread_atfork([] { ++handlers_called; }, nullptr, nullptr);
    TemporaryDirectory directory;
    setenv("OFFPATH_DAEMON", OFFPATHD, 1);
    setenv("OFFPATH_IDLE_EXIT", "1", 1);
    std::string problem;
    EXPECT_EQ(client::start_daemon(directory.path(), problem), Status::ok) << problem;
    EXPECT_EQ(handlers_called, 0);
    const double give_up = now() + 60;
    while (has(directory, ".pid") && now() < give_up)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(has(directory, ".pid"));
    unsetenv("OFFPATH_DAEMON");
    unsetenv("OFFPATH_IDLE_EXIT");
}

// A rank that only waits for the one that starts the daemon must not wait if that one cannot start it.
TEST(Lifecycle, DoesNotWaitForADaemonThatCannotStart) {
    client::AttachOptions options;
    options.autostart = true;
    options.local_rank = 1;
    client::Attachment attachment;
    TemporaryDirectory directory;
    options.directory = directory.path() + "/open";
    ASSERT_EQ(mkdir(options.directory.c_str(), 0700), 0);
    ASSERT_EQ(chmod(options.directory.c_str(), 0777), 0);
    std::string problem;
    EXPECT_EQ(client::attach(options, attachment, problem), Status::access);
    EXPECT_NE(problem.find("others may write"), std::string::npos) << problem;
    setenv("OFFPATH_DAEMON", "/nonexistent/offpathd", 1);
    options.directory = directory.path();
    EXPECT_EQ(client::attach(options, attachment, problem), Status::unavailable);
    EXPECT_NE(problem.find("names no program"), std::string::npos) << problem;
    unsetenv("OFFPATH_DAEMON");
}

}  // namespace
}  // namespace offpath::test
