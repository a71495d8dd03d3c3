// The watch over peers' processes, with real ones.
#include "transport/ucx/process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace offpath::transport::ucx {
namespace {

// A child that sleeps, and the identity that it reports.
struct Child {
    Child() {
        int pipes[2];
        EXPECT_EQ(pipe(pipes), 0);
        pid = fork();
        if (pid == 0) {
            const Process self = this_process();
            const ssize_t written = write(pipes[1], &self, sizeof self);
            if (written == sizeof self) pause();
            _exit(0);
        }
        char bytes[sizeof process];
        EXPECT_EQ(read(pipes[0], bytes, sizeof bytes), static_cast<ssize_t>(sizeof bytes));
        std::memcpy(&process, bytes, sizeof bytes);
        close(pipes[0]);
        close(pipes[1]);
    }
    void kill() {
        if (pid == 0) return;
        ::kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
        pid = 0;
    }
    ~Child() { kill(); }
    pid_t pid = 0;
    Process process;
};

TEST(ProcessWatch, TellsWhoDied) {
    Child first, second;
    EXPECT_EQ(first.process.pid, static_cast<std::uint64_t>(first.pid));
    EXPECT_NE(first.process, this_process()) << "a fork is another process";
    EXPECT_EQ(this_process(), this_process());
    ProcessWatch watch;
    int tokens[2], fds[2] = {-1, -1};
    ASSERT_EQ(watch.watch(first.process, &tokens[0], fds[0]), ProcessWatch::Seen::alive);
    ASSERT_EQ(watch.watch(second.process, &tokens[1], fds[1]), ProcessWatch::Seen::alive);
    EXPECT_EQ(watch.dead(), nullptr);
    second.kill();
    pollfd poller{watch.fd(), POLLIN, 0};
    EXPECT_EQ(poll(&poller, 1, 5000), 1);
    EXPECT_EQ(watch.dead(), &tokens[1]);
    watch.forget(fds[1]);
    EXPECT_EQ(watch.dead(), nullptr);
    EXPECT_EQ(poll(&poller, 1, 0), 0);
    watch.forget(fds[0]);
    first.kill();
    EXPECT_EQ(watch.dead(), nullptr);
}

TEST(ProcessWatch, KnowsWhatItCannotSee) {
    Child child;
    ProcessWatch watch;
    int fd = -1;
    Process elsewhere = child.process;
    ++elsewhere.boot;
    EXPECT_EQ(watch.watch(elsewhere, this, fd), ProcessWatch::Seen::not_visible);
    elsewhere = child.process;
    ++elsewhere.ipc_space;
    EXPECT_EQ(watch.watch(elsewhere, this, fd), ProcessWatch::Seen::not_visible);
    // Another process has reused the pid.
    Process before = child.process;
    --before.start;
    EXPECT_EQ(watch.watch(before, this, fd), ProcessWatch::Seen::dead);
    child.kill();
    EXPECT_EQ(watch.watch(child.process, this, fd), ProcessWatch::Seen::dead);
    EXPECT_EQ(fd, -1);
}

}  // namespace
}  // namespace offpath::transport::ucx
