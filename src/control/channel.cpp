#include "control/channel.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bit>
#include <climits>

namespace offpath::control {
namespace {

constexpr std::uint32_t max_completions = 1u << 20;
constexpr std::uint64_t max_ring_bytes = 1ull << 30;

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
    return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

}  // namespace

bool acceptable(const ChannelSizes& sizes) {
    return sizes.completions > 0 && sizes.completions <= max_completions && sizes.completions % 128 == 0 &&
           std::has_single_bit(sizes.ring_bytes) && sizes.ring_bytes >= 4 * max_record_bytes &&
           sizes.ring_bytes <= max_ring_bytes;
}

void WaitWords::wake() const {
    sequence->fetch_add(1, std::memory_order_seq_cst);
    if (waiting->load(std::memory_order_seq_cst) != 0) futex(*sequence, FUTEX_WAKE, INT_MAX, nullptr);
}

std::uint32_t ClientChannel::enter_wait() {
    words_.waiting->fetch_add(1, std::memory_order_seq_cst);
    announce_wait();
    return words_.sequence->load(std::memory_order_seq_cst);
}

void ClientChannel::sleep(std::uint32_t sequence, std::uint64_t timeout_ns) {
    constexpr std::uint64_t second = 1'000'000'000;
    const timespec timeout{static_cast<time_t>(timeout_ns / second), static_cast<long>(timeout_ns % second)};
    futex(*words_.sequence, FUTEX_WAIT, sequence, &timeout);
}

void ClientChannel::leave_wait() {
    words_.waiting->fetch_sub(1, std::memory_order_relaxed);
    withdraw_wait();
}

void ClientChannel::wake_waiters() {
    words_.sequence->fetch_add(1, std::memory_order_seq_cst);
    futex(*words_.sequence, FUTEX_WAKE, INT_MAX, nullptr);
}

}  // namespace offpath::control
