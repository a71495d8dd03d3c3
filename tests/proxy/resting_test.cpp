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
    constexpr std::uint64_t longer = 200 * spin;
    Resting resting(longer);
    std::uint64_t now = 1'000'000;
    const std::uint64_t end = now + Resting::courteous_times * longer;
    ASSERT_EQ(resting.next(now), Next::spin);
    for (now += longer; now < end; resting.yielded(now)) {
        ASSERT_EQ(resting.next(now), Next::yield) << now;
        now += Resting::brief_ns - 1;
    }
    EXPECT_EQ(resting.next(now), Next::sleep);
}

TEST(Resting, SleepsWhereAnotherKeepsTheCore) {
    Resting resting(spin);
    std::uint64_t now = 1'000'000;
    for (std::uint64_t shy = Resting::shy_ns; shy <= 4 * Resting::shy_ns; shy *= 2) {
        ASSERT_EQ(after_spinning(resting, now), Next::yield) << shy;
        now += spin + Resting::brief_ns;
        resting.yielded(now);
        resting.worked();  // something came while another had the core
        for (const std::uint64_t end = now + shy - spin; now < end; now += shy / 50)
            ASSERT_EQ(after_spinning(resting, now), Next::sleep) << shy;
        now += spin;
    }
}

TEST(Resting, NeverSpinsWhereItShallNot) {
    Resting resting(0);
    for (std::uint64_t now = 1; now < 100; ++now)
        ASSERT_EQ(resting.next(now), Next::sleep);
}

}  // namespace
}  // namespace offpath::proxy
