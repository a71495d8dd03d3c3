// What the agents request of the scheduler, as the kernel reports it.
#include "base/scheduling.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <thread>

namespace offpath {
namespace {

struct Attributes {
    std::uint32_t size = 0, policy = 0;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime = 0, deadline = 0, period = 0;
};

Attributes own() {
    Attributes attributes;
    EXPECT_EQ(syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0), 0);
    return attributes;
}

bool kernel_has_slices() {
    utsname name{};
    int major = 0, minor = 0;
    uname(&name);
    return std::sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
           (major > 6 || (major == 6 && minor >= 12));
}

TEST(Scheduling, ShortSlicesAreTheThreadsOwn) {
    if (!kernel_has_slices()) GTEST_SKIP() << "this kernel has no slices of a thread's own";
    const std::uint64_t before = own().runtime;
    std::thread([] {
        ASSERT_EQ(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 3), 0);
        ask_for_short_slices();
        const Attributes now = own();
        if (now.runtime == 0) GTEST_SKIP() << "this system does not tell of slices";
        EXPECT_EQ(now.runtime, 100'000u);
        EXPECT_EQ(now.policy, static_cast<std::uint32_t>(SCHED_OTHER));
        EXPECT_EQ(now.nice, 3) << "no greater share of the core, and no smaller one";
    }).join();
    EXPECT_EQ(own().runtime, before) << "nobody else's";
}

// The user chose another policy on purpose.
TEST(Scheduling, OtherPoliciesAreLeftAlone) {
    std::thread([] {
        const sched_param none{};
        ASSERT_EQ(sched_setscheduler(0, SCHED_BATCH, &none), 0);
        const std::uint64_t before = own().runtime;
        ask_for_short_slices();
        EXPECT_EQ(own().policy, static_cast<std::uint32_t>(SCHED_BATCH));
        EXPECT_EQ(own().runtime, before);
    }).join();
}

}  // namespace
}  // namespace offpath
