#include "turns.h"

#include <cerrno>
#include <climits>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace mpi_bench {

namespace {

constexpr int kMostSeconds = 60;

// The programs share only the file, so these futexes are not private.
long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
    static_assert(sizeof word == sizeof value);
    return ::syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

}  // namespace

Turns::Turns(const std::string& file, std::uint32_t mine, std::uint32_t programs)
    : mine_(mine), programs_(programs) {
    const auto failed = [&] { return std::system_error(errno, std::generic_category(), file); };
    const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) throw failed();
    void* mapped = MAP_FAILED;
    if (::ftruncate(fd, sizeof(Shared)) == 0)
        mapped = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const auto error = failed();
    ::close(fd);
    if (mapped == MAP_FAILED) throw error;
    shared_ = static_cast<Shared*>(mapped);
}

Turns::~Turns() {
    if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
}

void Turns::take() {
    if (shared_ == nullptr) return;
    const auto now = [this] { return shared_->turn.load(std::memory_order_acquire); };
    for (std::uint32_t turn = now(); turn % programs_ != mine_; turn = now()) {
        const timespec timeout{kMostSeconds, 0};
        if (futex(shared_->turn, FUTEX_WAIT, turn, &timeout) != 0 && errno == ETIMEDOUT)
            throw std::runtime_error("the other program has kept its turn for a minute: it is gone or stuck");
    }
}

void Turns::give(std::uint32_t members) {
    if (shared_ == nullptr) return;
    if (shared_->given.fetch_add(1, std::memory_order_acq_rel) + 1 < members) return;
    shared_->given.store(0, std::memory_order_relaxed);
    shared_->turn.fetch_add(1, std::memory_order_release);
    futex(shared_->turn, FUTEX_WAKE, INT_MAX, nullptr);
}

}  // namespace mpi_bench
