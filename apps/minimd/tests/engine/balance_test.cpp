// Shares that follow from measured times, and the latencies of kernels that they take into account.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

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

double now() {
    return std::chrono::duration<double>(KernelLatency::Clock::now().time_since_epoch()).count();
}

void pass(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

TEST(KernelLatency, IsTheWayThereAndTheLastWayBackThatWasSeen) {
    KernelLatency way;
    way.started();
    pass(2 * ms);
    const double began = now();
    way.asked(true);
    const double ended = now();
    pass(3 * ms);
    way.done(began, ended);
    const double first = way.seconds();
    EXPECT_GE(first, 5 * ms);
    // The device was done long before the host asked for the result.
    way.started();
    const double again = now();
    pass(30 * ms);
    way.asked(false);
    way.done(again, again + 1e-6);
    EXPECT_GE(way.seconds(), 3 * ms);
    EXPECT_LT(way.seconds(), first + 10 * ms);
}

TEST(KernelLatency, OfAnotherClockIsWhatTheHostWaitedFor) {
    KernelLatency way;
    way.started();
    pass(5 * ms);
    way.asked(true);
    way.done(100.0, 100.001);
    const double seen = way.seconds();
    EXPECT_GE(seen, 4 * ms);
    way.started();
    way.asked(false);
    way.done(101.0, 101.001);
    EXPECT_LT(way.seconds(), seen);
}

}  // namespace
}  // namespace minimd
