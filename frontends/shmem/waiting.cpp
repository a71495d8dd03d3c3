#include "waiting.h"

#include <fmt/format.h>
#include <sched.h>
#include <time.h>

#include <algorithm>

#include "base/clock.h"
#include "core.h"

namespace offpath::shmem {

namespace {

constexpr std::uint64_t yield_until_ns = 200'000;
constexpr std::uint64_t share_of_wait = 16;  // a sleep takes at most this part of the time waited
constexpr std::uint64_t longest_sleep_ns = 500'000;
// PEs check at different times, those with lower numbers earlier. The first PE that detects a loss ends the
// others.
constexpr std::uint64_t look_interval_ns = 1'500'000'000, next_pe_ns = 250'000'000, most_next = 6;

std::uint64_t look_every_ns() {
    return look_interval_ns + next_pe_ns * std::min(static_cast<std::uint64_t>(my_pe()), most_next);
}

}  // namespace

int Waiter::limit_ = spins_shared;

void Waiter::share_cores(bool shared) {
    limit_ = shared ? spins_shared : spins_alone;
}

void Waiter::rest() {
    if (since_ns_ == 0) since_ns_ = now_ns();
    const std::uint64_t waited = now_ns() - since_ns_;
    if (waited < yield_until_ns) {
        sched_yield();
        return;
    }
    look_for_loss();
    if (waited - looked_ns_ > look_every_ns()) {
        looked_ns_ = waited;
        check_job();
    }
    const timespec time{0, static_cast<long>(std::min(waited / share_of_wait, longest_sleep_ns))};
    nanosleep(&time, nullptr);
}

void polled_in_vain() {
    static thread_local unsigned misses = 0;
    static thread_local std::uint64_t looked_ns = 0;
    if (++misses % (Waiter::cores_shared() ? 16 : 1024) != 0) return;
    sched_yield();
    look_for_loss();
    const std::uint64_t now = now_ns();
    if (looked_ns == 0) looked_ns = now;
    if (now - looked_ns < look_every_ns()) return;
    looked_ns = now;
    check_job();
}

std::size_t turn() {
    static thread_local std::size_t next = 0;
    return next++;
}

void fail_comparison(int comparison) {
    fail(fmt::format("{} is no comparison: SHMEM_CMP_EQ to SHMEM_CMP_LE are {} to {}", comparison,
                     static_cast<int>(compare_equal), static_cast<int>(compare_less_equal)));
}

}  // namespace offpath::shmem
