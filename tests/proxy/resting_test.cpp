// What an idle proxy does, by the clock that it is given; nobody else wants this core for long.
#include "proxy/resting.h"

#include <gtest/gtest.h>

namespace offpath::proxy {
namespace {

using Next = Resting::Next;
constexpr std::uint64_t spin = 50'000;

// Idle from `now` on: spins, for as long as it does.
Next after_spinning(Resting& resting, std::uint64_t now) {
    Next next = resting.next(now);
    return next == Next::spin ? resting.next(now + spin) : next;
}

TEST(Resting, SpinsThenYieldsThenSleeps) {
    Resting resting(spin);
    const std::uint64_t now = 1'000'000;
    EXPECT_EQ(resting.next(now), Next::spin);
    EXPECT_EQ(resting.next(now + spin - 1), Next::spin);
    ASSERT_EQ(resting.next(now + spin), Next::yield);
    std::uint64_t later = now + spin;
    for (; later < now + Resting::courteous_times * spin; later += 2000)
        ASSERT_EQ(resting.next(later), Next::yield) << later - now;
    EXPECT_EQ(resting.next(later), Next::sleep);
    EXPECT_EQ(resting.next(later + 10), Next::spin) << "it has been woken";
    resting.worked();
    EXPECT_EQ(resting.next(later + spin + 20), Next::spin) << "work starts the time anew";
}

TEST(Resting, LooksOnBesideOthersThatAreBrief) {
    Resting resting(spin);
    std::uint64_t now = 1'000'000;
    ASSERT_EQ(after_spinning(resting, now), Next::yield);
    for (now += spin; now < 1'000'000 + 19 * spin; now += Resting::brief_ns - 1)
        ASSERT_EQ(resting.next(now), Next::yield) << now;
}

TEST(Resting, SleepsWhereAnotherKeepsTheCore) {
    Resting resting(spin);
    std::uint64_t now = 1'000'000;
    const std::uint64_t apart = 100 * spin;
    unsigned shy = Resting::shy_times;
    for (int times = 0; times < 3; ++times, shy *= 2) {
        ASSERT_EQ(after_spinning(resting, now += apart), Next::yield);
        EXPECT_EQ(resting.next(now + spin + Resting::brief_ns), Next::sleep);
        for (unsigned i = 1; i < shy; ++i)
            ASSERT_EQ(after_spinning(resting, now += apart), Next::sleep) << i;
    }
}

TEST(Resting, NeverSpinsWhereItShallNot) {
    Resting resting(0);
    for (std::uint64_t now = 1; now < 100; ++now)
        ASSERT_EQ(resting.next(now), Next::sleep);
}

}  // namespace
}  // namespace offpath::proxy
