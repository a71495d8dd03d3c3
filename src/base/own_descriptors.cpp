#include "base/own_descriptors.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace offpath::own_descriptors {
namespace {

// The kernel's default limit of descriptors (fs.nr_open). Descriptors beyond it are not replaced.
constexpr int most = 1 << 20;
constexpr int word_bits = 64;

// One bit per descriptor. There is no lock, because in the child of a process with threads any lock may stay
// held forever.
std::array<std::atomic<std::uint64_t>, most / word_bits> noted{};
std::atomic<int> words{0};  // how many words of `noted` were ever used
std::atomic<int> nothing{-1};

std::uint64_t bit(int fd) {
    return std::uint64_t{1} << (fd % word_bits);
}

void replace_all() {
    const int null = nothing.load(std::memory_order_acquire);
    const int used = words.load(std::memory_order_acquire);
    for (int word = 0; word < used; ++word) {
        std::uint64_t left = noted[static_cast<std::size_t>(word)].load(std::memory_order_acquire);
        for (; left != 0; left &= left - 1) {
            const int fd = word * word_bits + std::countr_zero(left);
            if (null < 0 || dup3(null, fd, O_CLOEXEC) < 0) close(fd);
        }
    }
}

}  // namespace

void note(int fd) {
    if (fd < 0 || fd >= most) return;
    const int word = fd / word_bits;
    noted[static_cast<std::size_t>(word)].fetch_or(bit(fd), std::memory_order_acq_rel);
    int used = words.load(std::memory_order_relaxed);
    while (used <= word && !words.compare_exchange_weak(used, word + 1, std::memory_order_acq_rel)) {
    }
}

void forget(int fd) {
    if (fd < 0 || fd >= most) return;
    noted[static_cast<std::size_t>(fd / word_bits)].fetch_and(~bit(fd), std::memory_order_acq_rel);
}

void replace_in_children() {
    static const bool once = [] {
        nothing.store(open("/dev/null", O_RDWR | O_CLOEXEC), std::memory_order_release);
        pthread_atfork(nullptr, nullptr, replace_all);
        return true;
    }();
    (void)once;
}

}  // namespace offpath::own_descriptors
