// Ranks that fork: a child that lives on must not keep a dead rank's session alive.
#include "harness.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sys/wait.h>
#include <atomic>
#include <filesystem>
#include <map>

namespace offpath::test {
namespace {

namespace fs = std::filesystem;

std::map<int, std::string> descriptors() {
    std::map<int, std::string> found;
    std::error_code gone;  // the descriptor of this listing itself
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
        const std::string target = fs::read_symlink(entry.path(), gone);
        if (!gone) found[std::stoi(entry.path().filename())] = target;
    }
    return found;
}

// How a rank makes its child: through the C library, which calls the handlers of pthread_atfork, or past it.
enum class How : std::uint8_t { fork, clone };

class Children : public testing::TestWithParam<How> {};
INSTANTIATE_TEST_SUITE_P(By, Children, testing::Values(How::fork, How::clone),
                         [](const auto& by) { return by.param == How::fork ? "fork" : "clone"; });

TEST_P(Children, DoNotKeepADeadRankAlive) {
    if (remote_mode() && GetParam() == How::clone)
        GTEST_SKIP() << "a device elsewhere sees the connection only, which such a child keeps";
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    Job job(3, directory.path(), [&](const Rank& me) {
        auto* const child = static_cast<std::atomic<std::uint32_t>*>(me.shared) + 1;
        if (me.rank != 1) return endless_job(me, OFFPATH_ERR_PEER_LOST, false);
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        const long made = GetParam() == How::fork ? fork() : syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (made == 0) {
            sleep(120);
            _exit(0);
        }
        *child = static_cast<std::uint32_t>(made);
        std::vector<char> out(me.size * 50000), in(me.size * 50000);
        while (true) {
            offpath_request_h request = nullptr;
            expect(offpath_ialltoall(world, out.data(), in.data(), 50000, &request), OFFPATH_OK, "start");
            expect(offpath_request_wait(request), OFFPATH_OK, "wait");
            offpath_request_free(request);
        }
    });
    wait_until_started(job);
    kill(job.pid(1), SIGKILL);
    EXPECT_EQ(job.wait(60), (std::vector<int>{0, -1, 0}));
    const auto child = static_cast<pid_t>(static_cast<std::atomic<std::uint32_t>*>(job.shared())[1].load());
    ASSERT_GT(child, 0);
    EXPECT_EQ(kill(child, SIGKILL), 0) << "the child ended early";
}

// Descriptors that init opened are /dev/null in a child. The parent continues.
TEST(Descriptors, OfARankAreClosedInItsChildren) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        const auto before = descriptors();
        offpath_context_h context = me.init();
        void* memory = nullptr;
        expect(offpath_mem_alloc(context, 1 << 20, &memory), OFFPATH_OK, "mem_alloc");
        const auto with = descriptors();
        std::size_t ours = 0;
        for (const auto& [fd, target] : with)
            if (before.count(fd) == 0 && target.find("socket:") == 0) ++ours;
        require(ours > 0, "there is a connection");
        const pid_t child = fork();
        if (child == 0) {
            for (const auto& [fd, target] : descriptors())
                require(before.count(fd) != 0 || with.count(fd) == 0 || target.find("socket:") != 0,
                        "descriptor " + std::to_string(fd) + " is " + target);
            _exit(0);
        }
        int status = -1;
        require(waitpid(child, &status, 0) == child && status == 0, "the child found none open");
        std::vector<char> in(100), out(100);
        offpath_request_h request = nullptr;
        expect(offpath_ialltoall(me.world(context), out.data(), in.data(), 100, &request), OFFPATH_OK,
               "ialltoall");
        expect(offpath_request_wait(request), OFFPATH_OK, "wait");
        offpath_request_free(request);
        offpath_mem_free(context, memory);
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

}  // namespace
}  // namespace offpath::test
