// When a proxy counts as lost: not while it had no chance to answer.
#include "control/life_signs.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace offpath::control {
namespace {

constexpr std::uint64_t ms = 1'000'000, limit = 800 * ms;  // an interval has 100 ms
using Next = LifeSigns::Next;

ThreadState state(char letter, std::uint64_t run_ns = 0) {
    return {true, letter, run_ns};
}

// Looks every 50 ms until the first question is asked. Returns the time of that.
std::uint64_t until_asked(LifeSigns& signs, std::uint64_t now) {
    for (int i = 0; i < 100; ++i, now += 50 * ms)
        if (signs.look(now, true, {}) == Next::ask) return now;
    ADD_FAILURE() << "it never asks";
    return now;
}

// Looks every 50 ms at a proxy that does not answer. Returns after which time it is lost; 0: not within 60 s.
template <typename State>
std::uint64_t until_lost(LifeSigns& signs, std::uint64_t asked, State&& at) {
    for (std::uint64_t passed = 50 * ms; passed < 60'000 * ms; passed += 50 * ms)
        if (signs.look(asked + passed, false, at(passed)) == Next::lost) return passed;
    return 0;
}

TEST(LifeSigns, AsksAgainAfterAnIntervalAndIsContentWithAnswers) {
    LifeSigns signs(limit);
    const std::uint64_t begin = 5'000 * ms;
    std::uint64_t now = until_asked(signs, begin);
    EXPECT_EQ(now, begin);
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(signs.look(now += 50 * ms, true, {}), Next::wait);
        EXPECT_EQ(signs.look(now += 50 * ms, true, {}), Next::wait);
        EXPECT_EQ(signs.look(now += 50 * ms, true, {}), Next::ask);
    }
}

TEST(LifeSigns, StoppedOrHungIsLost) {
    for (const char letter : {'T', 'S', 'D'}) {
        LifeSigns signs(limit);
        const std::uint64_t asked = until_asked(signs, 1);
        EXPECT_EQ(until_lost(signs, asked, [&](std::uint64_t) { return state(letter); }), limit) << letter;
    }
    LifeSigns unseen(limit);
    EXPECT_EQ(until_lost(unseen, until_asked(unseen, 1), [](std::uint64_t) { return ThreadState{}; }), limit);
}

TEST(LifeSigns, TimeWithoutTheCpuDoesNotCount) {
    LifeSigns starved(limit);
    EXPECT_EQ(until_lost(starved, until_asked(starved, 1), [](std::uint64_t) { return state('R', 7); }), 0u);
    // With a tenth of a CPU, the limit is ten times as long.
    LifeSigns slow(limit);
    EXPECT_EQ(until_lost(slow, until_asked(slow, 1), [](std::uint64_t t) { return state('R', t / 10); }),
              10 * limit);
    // The proxy has the CPU, but its loop never comes round.
    LifeSigns endless(limit);
    EXPECT_EQ(until_lost(endless, until_asked(endless, 1), [](std::uint64_t t) { return state('R', t); }),
              limit);
}

TEST(LifeSigns, ADebuggerMayTakeItsTime) {
    LifeSigns signs(limit);
    EXPECT_EQ(until_lost(signs, until_asked(signs, 1), [](std::uint64_t) { return state('t'); }), 0u);
}

// A program that computed, or that was stopped together with its device, looks again after an hour.
TEST(LifeSigns, TimeWithoutLooksCountsLittle) {
    LifeSigns signs(limit);
    std::uint64_t now = until_asked(signs, 1);
    now += 3600'000 * ms;
    EXPECT_EQ(signs.look(now, false, state('S')), Next::wait);
    EXPECT_LE(signs.silent_ns(), limit / 4);
    EXPECT_EQ(signs.look(now + 50 * ms, true, {}), Next::wait);
    EXPECT_EQ(signs.look(now + 3600'000 * ms, true, {}), Next::ask);
}

// The program tests now and then, and computes in between.
TEST(LifeSigns, RareLooksSuffice) {
    LifeSigns signs(limit);
    std::uint64_t now = 1'000 * ms;
    EXPECT_EQ(signs.look(now, true, {}), Next::ask);
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(signs.look(now += 10 * limit, false, state('S')), Next::wait);
    EXPECT_EQ(signs.look(now += 10 * limit, false, state('S')), Next::lost);
}

// The kernel's letters for the states of a process.
TEST(LifeSigns, ReadsTheStateOfAThread) {
    const pid_t child = fork();
    if (child == 0) {
        while (true)
            pause();
    }
    const auto comes = [&](char letter) {
        for (int i = 0; i < 2000; ++i) {
            const ThreadState seen = thread_state(child, child);
            if (seen.known && seen.letter == letter) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        return false;
    };
    EXPECT_TRUE(comes('S'));
    kill(child, SIGSTOP);
    EXPECT_TRUE(comes('T'));
    kill(child, SIGCONT);
    if (ptrace(PTRACE_SEIZE, child, nullptr, nullptr) == 0) {
        ptrace(PTRACE_INTERRUPT, child, nullptr, nullptr);
        EXPECT_TRUE(comes('t'));
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_FALSE(thread_state(child, child).known);
    const ThreadState mine = thread_state(getpid(), gettid());
    EXPECT_EQ(mine.letter, 'R');
    EXPECT_GT(mine.run_ns, 0u);
}

}  // namespace
}  // namespace offpath::control
