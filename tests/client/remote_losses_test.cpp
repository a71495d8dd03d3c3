// Remote attach: what happens when one side falls silent or runs out of memory.
#include "remote_fixture.h"

#include <signal.h>
#include <sys/resource.h>

#include <thread>

namespace offpath::test {
namespace {

// Uses up the device's memory: starts schedules of 30,000 ops each, one after the other, until the device
// refuses.
void take_all_memory(const Rank& me) {
    offpath_context_h context = me.init();
    const std::string path = me.directory + "/said";
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(file, 2);
    offpath_status_t status = OFFPATH_OK;
    static char word = 0;
    for (int i = 0; i < 300 && status == OFFPATH_OK; ++i) {
        offpath_group_h group = nullptr;
        expect(offpath_group_create(me.world(context), &group), OFFPATH_OK, "create");
        for (std::uint32_t tag = 0; tag < 15000; ++tag) {
            expect(offpath_group_send(group, &word, 0, me.rank, tag), OFFPATH_OK, "send");
            expect(offpath_group_recv(group, &word, 0, me.rank, tag), OFFPATH_OK, "recv");
        }
        expect(offpath_group_end(group), OFFPATH_OK, "end");
        status = offpath_group_start(group);
        if (status == OFFPATH_OK) status = offpath_group_wait(group);
    }
    expect(status, OFFPATH_ERR_PEER_LOST, "the device is at its limit");
    std::ifstream said(path);
    require_words(std::string(std::istreambuf_iterator<char>(said), {}),
                  {"127.0.0.1:", "no memory left", "rank 0"});
    expect(offpath_finalize(context), OFFPATH_OK, "finalize");
}

// One job asks for more memory than the device has. Only that job gets an error.
TEST_F(Remote, OutOfMemoryIsOneJobsAffair) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers need address space without a limit";
#endif
    Job bystander(2, directory.path(), here(busy_job));
    wait_until_started(bystander, 20);
    std::size_t pages = 0;
    std::ifstream("/proc/" + std::to_string(daemon.pid()) + "/statm") >> pages;
    const rlimit limit{pages * 4096 + (std::size_t{48} << 20), RLIM_INFINITY};
    ASSERT_EQ(prlimit(daemon.pid(), RLIMIT_AS, &limit, nullptr), 0);
    EXPECT_TRUE(all_right(1, directory.path(), here(take_all_memory)));
    EXPECT_NE(daemon.log().find("no memory left"), std::string::npos) << daemon.log();
    // The memory that it took has been given back.
    EXPECT_TRUE(all_right(2, directory.path(), here([](const Rank& me) {
                              offpath_context_h context = me.init();
                              gather_once(context, me);
                              expect(offpath_finalize(context), OFFPATH_OK, "finalize");
                          })));
    static_cast<std::atomic<std::uint32_t>*>(bystander.shared())[1] = 1;
    EXPECT_EQ(bystander.wait(), zeros(2));
    EXPECT_TRUE(daemon.running());
}

// The device's system stops without a word. No connection is closed.
TEST_F(Remote, SilentDeviceIsLost) {
    Job job(2, directory.path(), here([](const Rank& me) {
                offpath_context_h context = me.init();
                auto* shared = static_cast<std::atomic<std::uint32_t>*>(me.shared);
                gather_once(context, me);
                char word = 0;
                offpath_request_h request = nullptr;
                expect(offpath_recv_offload(me.world(context), &word, 1, OFFPATH_ANY_SOURCE, 0, &request),
                       OFFPATH_OK, "recv");
                shared->fetch_add(1);
                expect(offpath_request_wait(request), OFFPATH_ERR_PEER_LOST, "wait");
                offpath_request_free(request);
                expect(offpath_finalize(context), OFFPATH_OK, "finalize");
            }));
    wait_until_started(job, 2);
    daemon.signal(SIGSTOP);
    EXPECT_EQ(job.wait(40), zeros(2));
    daemon.signal(SIGCONT);
    daemon.signal(SIGKILL);
    daemon.wait();
}

// The host's system stops. Its peers are told, and the device continues to serve others.
TEST_F(Remote, SilentHostIsLost) {
    Job job(2, directory.path(), here([](const Rank& me) {
                offpath_context_h context = me.init();
                auto* shared = static_cast<std::atomic<std::uint32_t>*>(me.shared);
                gather_once(context, me);
                shared->fetch_add(1);
                if (me.rank == 1) {
                    std::this_thread::sleep_for(std::chrono::seconds(60));
                    _exit(3);
                }
                char word = 0;
                offpath_request_h request = nullptr;
                expect(offpath_recv_offload(me.world(context), &word, 1, 1, 0, &request), OFFPATH_OK, "recv");
                expect(offpath_request_wait(request), OFFPATH_ERR_PEER_LOST, "wait");
                offpath_request_free(request);
                expect(offpath_finalize(context), OFFPATH_OK, "finalize");
                kill(static_cast<pid_t>(shared[2].load()), SIGKILL);
            }));
    static_cast<std::atomic<std::uint32_t>*>(job.shared())[2] = static_cast<std::uint32_t>(job.pid(1));
    wait_until_started(job, 2);
    kill(job.pid(1), SIGSTOP);
    EXPECT_EQ(job.wait(40), (std::vector<int>{0, -1}));
    EXPECT_NE(daemon.log().find("nothing was heard of it for 8 s"), std::string::npos) << daemon.log();
    EXPECT_TRUE(daemon.running());
}

double own_cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// A program that computes for long does not look dead to either side. What keeps it alive costs next to
// nothing.
TEST_F(Remote, LongComputationsAreNoLoss) {
    EXPECT_TRUE(all_right(2, directory.path(), here([](const Rank& me) {
                              offpath_context_h context = me.init();
                              gather_once(context, me);
                              const double before = own_cpu_seconds();
                              std::this_thread::sleep_for(std::chrono::seconds(10));
                              const double used = own_cpu_seconds() - before;
                              require(used < 0.1,
                                      "1 % of 10 s are not enough: " + std::to_string(used) + " s");
                              gather_once(context, me);
                              expect(offpath_finalize(context), OFFPATH_OK, "finalize");
                          })));
}

}  // namespace
}  // namespace offpath::test
