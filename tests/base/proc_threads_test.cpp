// What /proc says of processes that end.
#include "base/proc_threads.h"

#include <gtest/gtest.h>

#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

namespace offpath {
namespace {

// A child that waits for signals.
class Child {
  public:
    Child() : pid_(fork()) {
        if (pid_ != 0) return;
        for (;;)
            pause();
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() {
        kill(pid_, SIGKILL);
        if (!reaped_) waitpid(pid_, nullptr, 0);
    }
    pid_t pid() const { return pid_; }
    // Returns when it has stopped.
    void stop() const {
        kill(pid_, SIGSTOP);
        waitpid(pid_, nullptr, WUNTRACED);
    }
    void reap() {
        waitpid(pid_, nullptr, 0);
        reaped_ = true;
    }

  private:
    const pid_t pid_;
    bool reaped_ = false;
};

TEST(IsDying, NotWhileItRunsOrIsStopped) {
    const Child child;
    ASSERT_GT(child.pid(), 0);
    EXPECT_FALSE(is_dying(child.pid()));
    child.stop();
    EXPECT_EQ(thread_letter(child.pid(), child.pid()), 'T');
    EXPECT_FALSE(is_dying(child.pid()));
}

TEST(IsDying, FromTheKillUntilNothingIsLeft) {
    Child child;
    ASSERT_GT(child.pid(), 0);
    child.stop();
    kill(child.pid(), SIGKILL);
    // Whether it has got a core meanwhile or not. The kernel shows neither the signal nor the end for an
    // instant between both.
    const auto shows = [&child] {
        for (int tries = 0; tries < 2000 && !is_dying(child.pid()); ++tries)
            usleep(10'000);
        return is_dying(child.pid());
    };
    for (int i = 0; i < 1000; ++i)
        EXPECT_TRUE(shows());
    child.reap();
    EXPECT_FALSE(is_dying(child.pid()));
}

}  // namespace
}  // namespace offpath
