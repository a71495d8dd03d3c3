#include "memory/fork_guard.h"

#include <atomic>

#include <pthread.h>

namespace offpath::memory {

namespace {

std::atomic<std::uint64_t> generation{0};  // the number of forks that led to this process
std::atomic<std::uint64_t> fork_count{0};  // the number of forks that it took part in, as parent or child

void in_parent_after_fork() {
    fork_count.fetch_add(1, std::memory_order_release);
}
void in_child_after_fork() {
    generation.fetch_add(1, std::memory_order_release);
    fork_count.fetch_add(1, std::memory_order_release);
}

void count_forks() {
    static const int registered = pthread_atfork(nullptr, in_parent_after_fork, in_child_after_fork);
    (void)registered;
}

}  // namespace

ForkGuard::ForkGuard() {
    count_forks();
    generation_ = generation.load(std::memory_order_acquire);
}

bool ForkGuard::in_child() const {
    return generation.load(std::memory_order_acquire) != generation_;
}

std::uint64_t ForkGuard::forks() {
    return fork_count.load(std::memory_order_acquire);
}

}  // namespace offpath::memory
