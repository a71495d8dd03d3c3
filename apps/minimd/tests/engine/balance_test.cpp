// Shares that follow from measured times, and the latencies of kernels that they take into account.
#include <gtest/gtest.h>

#include <chrono>

#include "minimd/offpath/balance.h"
#include "minimd/offpath/kernel_latency.h"

namespace minimd {
namespace {

constexpr double ms = 1e-3;

// A device at half the host's speed; neither has other work.
Balance half_speed() {
    Balance balance(-1.0);
    balance.measured_host(1000, 1 * ms, 0.0);
    balance.measured_device(1000, 2 * ms, 2 * ms);
    return balance;
}

TEST(Balance, MakesBothFinishTogether) {
    EXPECT_NEAR(half_speed().share(900, 0), 1.0 / 3, 1e-12);
    // The device's share grows with the host's other work, and shrinks with the device's.
    Balance balance = half_speed();
    balance.expect_host_busy(0.3 * ms);
    EXPECT_NEAR(balance.share(900, 0), (0.9 + 0.3) / 2.7, 1e-12);
    EXPECT_NEAR(balance.share(900, 150), (0.9 + 0.3 - 0.3) / 2.7, 1e-12);
    balance.expect_host_busy(9 * ms);
    EXPECT_EQ(balance.share(900, 0), 1.0);
    EXPECT_EQ(balance.share(0, 100), 0.0);
    EXPECT_EQ(Balance(0.7).share(900, 0), 0.7);
}

TEST(Balance, FollowsWhatTheHostDoesBesides) {
    Balance balance = half_speed();
    for (int step = 0; step < 20; ++step)
        balance.measured_host(600, 0.6 * ms, 0.15 * ms);
    EXPECT_NEAR(balance.share(900, 0), (0.9 + 0.15) / 2.7, 1e-12);
}

TEST(Balance, IsNotChangedByOneSlowStep) {
    Balance balance = half_speed();
    for (int step = 0; step < 20; ++step) {
        balance.measured_host(600, 0.6 * ms, 0.0);
        balance.measured_device(300, 0.6 * ms, 0.6 * ms);
    }
    balance.measured_device(300, 3 * ms, 4 * ms);
    balance.measured_host(600, 5 * ms, 2 * ms);
    EXPECT_NEAR(balance.share(900, 0), 1.0 / 3, 1e-12);
}

// The time `milliseconds` after the start of the host's clock.
KernelLatency::Clock::time_point at(double milliseconds) {
    return KernelLatency::Clock::time_point(std::chrono::duration_cast<KernelLatency::Clock::duration>(
        std::chrono::duration<double>(milliseconds * ms)));
}

TEST(KernelLatency, IsTheWayThereAndTheLastWayBackThatWasSeen) {
    KernelLatency way;
    way.started(at(1000));
    way.asked(true, at(1003));
    way.done(1002 * ms, 1004 * ms, at(1007));
    EXPECT_NEAR(way.seconds(), (2 + 3) * ms, 1e-9);
    // The device was done long before the host asked for the result.
    way.started(at(2000));
    way.asked(false, at(2030));
    way.done(2001 * ms, 2002 * ms, at(2031));
    EXPECT_NEAR(way.seconds(), (1 + 3) * ms, 1e-9);
}

TEST(KernelLatency, OfAnotherClockIsWhatTheHostWaitedFor) {
    KernelLatency way;
    way.started(at(1000));
    way.asked(true, at(1005));
    way.done(100'000.0, 100'000.001, at(1006));
    EXPECT_NEAR(way.seconds(), 5 * ms, 1e-9);
    way.started(at(2000));
    way.asked(false, at(2001));
    way.done(100'001.0, 100'001.001, at(2002));
    EXPECT_NEAR(way.seconds(), 0.9 * 5 * ms, 1e-9);
}

}  // namespace
}  // namespace minimd
