#include "target/shared_line.h"

#include "base/clock.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>

namespace offpath::target {
namespace {

// A thread that sleeps checks at this interval whether the other side is alive.
constexpr std::uint64_t look_ns = 50'000'000;

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::uint64_t limit_ns) {
    timespec limit{static_cast<time_t>(limit_ns / 1'000'000'000),
                   static_cast<long>(limit_ns % 1'000'000'000)};
    syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace

std::size_t SharedLine::file_bytes() {
    return sizeof(Shared);
}

Status SharedLine::make_file(memory::File& file) {
    return memory::make_memory_file("offpath-target-line", file_bytes(), file);
}

Status SharedLine::open(Side side, const memory::File& file, FileDescriptor socket,
                        std::unique_ptr<SharedLine>& line) {
    memory::Mapping mapping;
    if (Status status = memory::Mapping::map(file.get(), file_bytes(), mapping); status != Status::ok)
        return status;
    line.reset(new SharedLine(side, std::move(mapping), std::move(socket)));
    return Status::ok;
}

SharedLine::SharedLine(Side side, memory::Mapping mapping, FileDescriptor socket)
    : mapping_(std::move(mapping)),
      socket_(std::move(socket)),
      mine_(reinterpret_cast<Shared*>(mapping_.data())->waiting[side == Side::program ? 0 : 1]),
      other_(reinterpret_cast<Shared*>(mapping_.data())->waiting[side == Side::program ? 1 : 0]),
      out_(reinterpret_cast<Shared*>(mapping_.data())->rings[side == Side::program ? 0 : 1]),
      in_(reinterpret_cast<Shared*>(mapping_.data())->rings[side == Side::program ? 1 : 0]),
      joint_(reinterpret_cast<Shared*>(mapping_.data())->joint) {}

std::size_t SharedLine::write(std::span<const std::byte> data) {
    const std::uint64_t tail = out_.tail.load(std::memory_order_relaxed);
    std::uint64_t used = tail - out_.head.load(std::memory_order_acquire);
    if (used >= ring_bytes) {
        mine_.wants_room.store(1, std::memory_order_seq_cst);
        used = tail - out_.head.load(std::memory_order_seq_cst);
        if (used >= ring_bytes) return 0;  // also if the other side has written nonsense
    }
    const std::size_t count = std::min<std::size_t>(data.size(), ring_bytes - used);
    const std::size_t at = tail % ring_bytes;
    const std::size_t first = std::min(count, ring_bytes - at);
    std::memcpy(out_.bytes + at, data.data(), first);
    std::memcpy(out_.bytes, data.data() + first, count - first);
    out_.tail.store(tail + count, std::memory_order_release);
    ring(other_, false);
    return count;
}

std::size_t SharedLine::read(std::span<std::byte> room) {
    const std::uint64_t head = in_.head.load(std::memory_order_relaxed);
    const std::uint64_t there =
        std::min<std::uint64_t>(in_.tail.load(std::memory_order_acquire) - head, ring_bytes);
    const std::size_t count = std::min<std::size_t>(room.size(), there);
    if (count == 0) return 0;
    const std::size_t at = head % ring_bytes;
    const std::size_t first = std::min(count, ring_bytes - at);
    std::memcpy(room.data(), in_.bytes + at, first);
    std::memcpy(room.data() + first, in_.bytes, count - first);
    in_.head.store(head + count, std::memory_order_release);
    ring(other_, true);
    return count;
}

bool SharedLine::readable() {
    return in_.tail.load(std::memory_order_acquire) != in_.head.load(std::memory_order_relaxed);
}

// Wakes a thread of `side` if that is needed. `room`: bytes were read, which matters only to a writer that
// found no room.
void SharedLine::ring(Waiting& side, bool room) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (room && (side.wants_room.load(std::memory_order_relaxed) == 0 ||
                 side.wants_room.exchange(0, std::memory_order_relaxed) == 0))
        return;
    if (!room && side.attended.load(std::memory_order_relaxed) != 0) return;
    if (side.sleepers.load(std::memory_order_relaxed) == 0) return;
    side.bell.fetch_add(1, std::memory_order_relaxed);
    futex_wake(side.bell);
}

void SharedLine::attend() {
    mine_.attended.store(1, std::memory_order_relaxed);
}

void SharedLine::leave() {
    mine_.attended.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (readable() && mine_.sleepers.load(std::memory_order_relaxed) > 0) wake();
}

void SharedLine::sleep(std::uint64_t limit_ns) {
    const std::uint32_t seen = mine_.bell.load(std::memory_order_acquire);
    mine_.sleepers.fetch_add(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const bool room =
        mine_.wants_room.load(std::memory_order_relaxed) == 0 ||
        out_.tail.load(std::memory_order_relaxed) - out_.head.load(std::memory_order_relaxed) < ring_bytes;
    const bool waits_for_room = mine_.wants_room.load(std::memory_order_relaxed) != 0;
    if (!readable() && !(waits_for_room && room) && !lost())
        futex_wait(mine_.bell, seen, std::min(limit_ns, look_ns));
    mine_.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void SharedLine::wake() {
    mine_.bell.fetch_add(1, std::memory_order_release);
    futex_wake(mine_.bell);
}

bool SharedLine::drained() {
    return out_.tail.load(std::memory_order_relaxed) == out_.head.load(std::memory_order_acquire);
}

bool SharedLine::lost() {
    if (lost_.load(std::memory_order_relaxed)) return true;
    const std::uint64_t now = now_ns();
    std::uint64_t looked = looked_ns_.load(std::memory_order_relaxed);
    if (now - looked < look_ns / 2 || !looked_ns_.compare_exchange_strong(looked, now)) return false;
    pollfd end{socket_.get(), POLLIN | POLLRDHUP, 0};
    if (poll(&end, 1, 0) > 0 && (end.revents & (POLLHUP | POLLRDHUP | POLLERR | POLLIN)) != 0) {
        char byte;
        const ssize_t got = recv(socket_.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) lost_ = true;
    }
    return lost_;
}

void SharedLine::hang_up() {
    shutdown(socket_.get(), SHUT_RDWR);
}

}  // namespace offpath::target
