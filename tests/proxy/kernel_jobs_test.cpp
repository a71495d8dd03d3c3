// The limit of time of kernels, with a host that answers when the test wants it, and a clock that the test
// sets.
#include "proxy/kernel_jobs.h"

#include "../emulation.h"

#include <gtest/gtest.h>

#include <sys/epoll.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

namespace offpath::proxy {
namespace {

class SetClock final : public Clock {
  public:
    std::uint64_t now_ns() const override { return now; }
    std::uint64_t now = 1'000'000'000;
};

struct Ended : Completion {
    Ended() {
        function = [](Completion* self, Status how) {
            static_cast<Ended*>(self)->status = how;
            static_cast<Ended*>(self)->done = true;
        };
    }
    Status status = Status::ok;
    bool done = false;
};

class KernelTime : public testing::Test {
  protected:
    void SetUp() override {
        if (test::emulated()) GTEST_SKIP() << "execve starts programs of this machine only";
        memory::SessionMemoryConfig config;
        config.pid = getpid();
        config.probe_address = reinterpret_cast<std::uint64_t>(&probe_);
        config.probe_value = probe_;
        std::string problem;
        ASSERT_EQ(make_session_memory(std::move(config), memory_, problem), Status::ok) << problem;
        jobs_ = std::make_unique<KernelJobs>(kernel_host::HostConfig{OFFPATH_SCRIPTED_KERNEL_HOST, {}, {}}, 1,
                                             clock_, epoll_.get(), *memory_, texts_, "a test");
        bool loaded = false;
        ASSERT_EQ(jobs_->load({1, "library", "symbol", 0, 0},
                              [&](Status status, const std::string&) { loaded = status == Status::ok; }),
                  Status::ok);
        until([&] { return loaded; });
    }
    void TearDown() override {
        if (jobs_ == nullptr) return;
        jobs_->stop(Status::canceled);
        until([&] { return jobs_->closed(); });
    }

    // `held`: the host answers it after the next one has come.
    void run(Ended& ended, bool held) {
        const std::byte argument{static_cast<unsigned char>(held ? 1 : 0)};
        ASSERT_EQ(jobs_->run(1, {}, {&argument, 1}, &ended), Status::in_progress);
        for (int i = 0; i < 10; ++i)
            jobs_->progress();
    }
    // Waits for the host, whose answers KernelJobs does not know of until they are taken.
    bool something_has_come() {
        epoll_event event;
        return epoll_wait(epoll_.get(), &event, 1, 10000) == 1;
    }
    void until(const std::function<bool()>& over) {
        for (int i = 0; i < 10000 && !over(); ++i) {
            epoll_event event;
            if (epoll_wait(epoll_.get(), &event, 1, 1) == 1) jobs_->event(event.data.fd);
            jobs_->progress();
        }
        ASSERT_TRUE(over());
    }

    std::uint64_t probe_ = 0x1234;
    const FileDescriptor epoll_{epoll_create1(EPOLL_CLOEXEC)};
    SetClock clock_;
    KernelTexts texts_{[](const control::Message&) {}};
    std::unique_ptr<memory::SessionMemory> memory_;
    std::unique_ptr<KernelJobs> jobs_;
};

// The answer has come, but the clock is looked at first.
TEST_F(KernelTime, AnAnswerBeforeTheKillCounts) {
    Ended first, second, third;
    run(first, false);
    run(second, true);
    ASSERT_TRUE(something_has_come());
    clock_.now += 2'000'000'000;
    for (int i = 0; i < 1000 && !first.done; ++i) {
        jobs_->progress();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(first.done);
    EXPECT_EQ(first.status, Status::ok);
    // The host goes on, and the next run has the whole time of its own.
    run(third, false);
    until([&] { return third.done; });
    EXPECT_EQ(second.status, Status::ok);
    EXPECT_EQ(third.status, Status::ok);
}

TEST_F(KernelTime, AKernelBeyondItsLimitIsKilled) {
    Ended first, second, third;
    run(first, true);
    clock_.now += 2'000'000'000;
    until([&] { return first.done; });
    EXPECT_EQ(first.status, Status::canceled);
    // Another host runs what follows.
    run(second, true);
    run(third, false);
    until([&] { return third.done; });
    EXPECT_EQ(second.status, Status::ok);
    EXPECT_EQ(third.status, Status::ok);
}

}  // namespace
}  // namespace offpath::proxy
