// What an idle proxy does, by the test's clock; no other process needs this core for long.
#include "proxy/resting.h"

#include <gtest/gtest.h>

namespace offpath::proxy {
namespace {

using Next = Resting::Next;
constexpr std::uint64_t spin = 50'000;

TEST(Resting, SpinsThenYieldsThenSleeps) {
    Resting resting(spin);
    std::uint64_t now = 1'000'000;
    EXPECT_EQ(resting.next(now), Next::spin);
    EXPECT_EQ(resting.next(now + spin - 1), Next::spin);
    // This thread may have been preempted before, which halves the time once.
    Next next = resting.next(now + spin);
    for (int i = 0; next == Next::sleep && i < 200; ++i) {
        now += 10 * spin;
        (void)resting.next(now);
        next = resting.next(now + spin);
    }
    ASSERT_EQ(next, Next::yield);
    std::uint64_t later = now + spin;
    for (; later < now + Resting::courteous_times * spin; later += 2000)
        ASSERT_EQ(resting.next(later), Next::yield) << later - now;
    EXPECT_EQ(resting.next(later), Next::sleep);
    EXPECT_EQ(resting.next(later + 10), Next::spin) << "it has been woken";
    resting.worked();
    EXPECT_EQ(resting.next(later + spin + 20), Next::spin) << "work starts the time anew";
}

TEST(Resting, SleepsAsSoonAsAnotherTookTheCore) {
    Resting resting(spin);
    std::uint64_t now = 1'000'000;
    Next next = Next::sleep;
    for (int i = 0; next == Next::sleep && i < 200; ++i) {
        now += 10 * spin;
        (void)resting.next(now);
        next = resting.next(now + spin);
    }
    ASSERT_EQ(next, Next::yield);
    EXPECT_EQ(resting.next(now + spin + 2 * Resting::brief_ns), Next::sleep);
}

TEST(Resting, NeverSpinsWhereItShallNot) {
    Resting resting(0);
    for (std::uint64_t now = 1; now < 100; ++now)
        ASSERT_EQ(resting.next(now), Next::sleep);
}

}  // namespace
}  // namespace offpath::proxy
