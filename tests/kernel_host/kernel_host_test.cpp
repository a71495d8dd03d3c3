// A proxy's end of a kernel host, with the real host, and with a scripted one that produces an order of
// events that is rare with the real one.
#include "kernel_host/kernel_host.h"
#include "kernel_host/descendants.h"
#include "kernel_host/host_process.h"
#include "kernel_host/openmp_mark.h"

#include "../emulation.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

namespace offpath::kernel_host {
namespace {

std::unique_ptr<KernelHost> start(const char* program) {
    std::unique_ptr<KernelHost> host;
    std::string problem;
    EXPECT_EQ(KernelHost::start({program, {}, {}}, host, problem), Status::ok) << problem;
    return host;
}

Answer take(KernelHost& host) {
    pollfd readable{host.fd(), POLLIN, 0};
    EXPECT_EQ(poll(&readable, 1, 10000), 1);
    Answer answer;
    EXPECT_EQ(host.receive(answer), Status::ok);
    return answer;
}

// An emulated program cannot start another one of its architecture.
class KernelHostProcess : public testing::Test {
  protected:
    void SetUp() override {
        if (test::emulated()) GTEST_SKIP() << "execve starts programs of this machine only";
    }
};

// A process that ends gives its memory back first. Until that is done, its children are its own, and nobody
// can read of whom it was.
TEST(HostProcess, WhatEndsHasChildrenUntilItHasEnded) {
    if (test::emulated()) GTEST_SKIP() << "another program's children are not those of qemu";
    ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        constexpr std::size_t plenty = std::size_t{256} << 20;  // takes tens of milliseconds to give back
        void* const memory =
            mmap(nullptr, plenty, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(memory, plenty, MADV_NOHUGEPAGE);
        std::memset(memory, 1, plenty);
        const pid_t grandchild = fork();
        if (grandchild != 0 && write(pipes[1], &grandchild, sizeof grandchild) != sizeof grandchild) _exit(1);
        while (true)
            pause();
    }
    pid_t grandchild = 0;
    ASSERT_EQ(read(pipes[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
    kill(child, SIGKILL);
    const auto meant = [&](pid_t pid) {
        std::ifstream environment(fmt::format("/proc/{}/environ", pid));
        return environment.get() != std::ifstream::traits_type::eof();
    };
    while (meant(child))
        std::this_thread::yield();
    EXPECT_TRUE(end_children(meant, std::chrono::seconds(20)));
    EXPECT_FALSE(meant(grandchild)) << "it is left";
    kill(grandchild, SIGKILL);
    waitpid(child, nullptr, 0);
    waitpid(grandchild, nullptr, WNOHANG);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    close(pipes[0]);
    close(pipes[1]);
}

// LLVM's OpenMP library makes such a file in each process that uses it, and removes it in exit() only.
TEST(HostProcess, LeavesNoMarkOfOpenMpBehind) {
    const auto mark_of = [](pid_t pid) {
        return std::filesystem::path(fmt::format("/dev/shm/__KMP_REGISTERED_LIB_{}_{}", pid, getuid()));
    };
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        std::ofstream(mark_of(getpid())) << "mark";
        _exit(3);
    }
    siginfo_t ended{};
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
    EXPECT_TRUE(std::filesystem::exists(mark_of(child)));
    remove_openmp_mark(child);
    EXPECT_FALSE(std::filesystem::exists(mark_of(child)));
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
}

TEST_F(KernelHostProcess, CountsItsAnswers) {
    const auto host = start(OFFPATH_KERNEL_HOST);
    ASSERT_NE(host, nullptr);
    EXPECT_FALSE(host->answered());
    for (std::uint64_t number = 1; number < 4; ++number) {
        ASSERT_EQ(host->send(Load{number, 7, "/no/such/library.so", "x"}), Status::ok);
        for (int i = 0; i < 2000 && !host->answered(); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        EXPECT_TRUE(host->answered());
        const Answer answer = take(*host);
        EXPECT_EQ(answer.number, number);
        EXPECT_EQ(answer.status, Status::invalid);
        EXPECT_FALSE(host->answered());
    }
}

// A proxy that believed that would check for answers again and again, perhaps on the core that the host needs
// to count the answer that was taken.
TEST_F(KernelHostProcess, HasNoAnswersThatItHasNotCounted) {
    const auto host = start(OFFPATH_SCRIPTED_KERNEL_HOST);
    ASSERT_NE(host, nullptr);
    for (std::uint64_t number = 1; number < 4; ++number) {
        ASSERT_EQ(host->send(Load{number, 7, "library", "symbol"}), Status::ok);
        EXPECT_EQ(take(*host).number, number);
        EXPECT_FALSE(host->answered()) << "taken, but not counted";
    }
    for (int i = 0; i < 3; ++i)
        ASSERT_EQ(host->send(Unmap{1}), Status::ok);
    ASSERT_EQ(host->send(Load{4, 7, "library", "symbol"}), Status::ok);
    EXPECT_EQ(take(*host).number, 4u);
    EXPECT_FALSE(host->answered());
}

// What a host did before its end counts, though it leaves records behind that it has not read.
TEST_F(KernelHostProcess, GivesItsAnswersBeforeItsEnd) {
    const auto host = start(OFFPATH_SCRIPTED_KERNEL_HOST);
    ASSERT_NE(host, nullptr);
    ASSERT_EQ(host->send(Load{1, 7, "library", "symbol"}), Status::ok);
    EXPECT_EQ(take(*host).number, 1u);
    // Not by a signal of ours: pid() is the warden's, and the host would go on.
    host->stop();
    for (int i = 0; i < 2000 && !host->has_stopped(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    for (std::uint64_t number = 2; number < 4; ++number)
        ASSERT_EQ(host->send(Load{number, 7, "library", "symbol"}), Status::ok);
    ASSERT_EQ(host->send(Unload{7}), Status::ok);
    ASSERT_EQ(host->send(Load{4, 7, "library", "symbol"}), Status::ok);
    host->go_on();
    pollfd hung_up{host->fd(), 0, 0};
    ASSERT_EQ(poll(&hung_up, 1, 10000), 1);
    EXPECT_EQ(take(*host).number, 2u);
    EXPECT_EQ(take(*host).number, 3u);
    Answer none;
    EXPECT_EQ(host->receive(none), Status::peer_lost);
}

}  // namespace
}  // namespace offpath::kernel_host
