// UnmapWatcher: tells when memory of this process that somebody has registered is unmapped, moved or emptied:
// munmap, mmap over it, mremap, brk, and madvise with DONTNEED, REMOVE or FREE, also from inside the C
// library (free of a large block, heap trim). It asks the kernel by userfaultfd events, which need no
// privilege in user mode and patch no code. Not caught: detached System V segments and mappings of ordinary
// files, which watch() refuses; memory given back to the allocator but not to the kernel, whose registration
// stays true. A fork counts as one event for all memory.
//
// Costs: nothing before the first watch(): no thread, no descriptor, and drain() is three loads. Afterwards a
// system call that unmaps watched memory waits until the watcher's thread has noted it, and drain() makes one
// short system call of its own.
// Order: what was unmapped before drain() was called is reported by it, also if the call that unmapped it, in
// another thread, has not returned yet and the address is already in use again. (Kernels before 5.15 count
// such calls wrongly when several overlap.) The thread notes events in a fixed array and takes one lock under
// which nothing allocates or unmaps, so it cannot wait for a caller's munmap.
// Ownership: one per cache. Threads: any.
#pragma once

#include "base/status.h"
#include "memory/file.h"
#include "memory/fork_guard.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace offpath::memory {

class UnmapWatcher {
  public:
    struct Event {
        std::uintptr_t address = 0;
        std::size_t bytes = 0;
    };

    UnmapWatcher() = default;
    ~UnmapWatcher();
    UnmapWatcher(const UnmapWatcher&) = delete;
    UnmapWatcher& operator=(const UnmapWatcher&) = delete;

    // Whether this system has it; `why_not` is for people.
    static Status probe(std::string& why_not);

    // Watches the pages that the range touches, from now until rest(). unsupported: that memory or this
    // system cannot be watched.
    Status watch(const void* address, std::size_t bytes);
    // Nothing is registered any more: ends the thread and all watching. Not while another thread is in
    // watch() or drain().
    void rest();

    // Calls invalidate(Event) for what has happened since the last drain. An event of SIZE_MAX bytes means
    // all memory.
    template <typename Invalidate>
    void drain(Invalidate&& invalidate) {
        if (const int events_fd = watching_.load(std::memory_order_acquire); events_fd >= 0)
            settle(events_fd);
        if (noted_.load(std::memory_order_seq_cst) == applied_.load(std::memory_order_acquire) &&
            forks_.load(std::memory_order_acquire) == ForkGuard::forks())
            return;
        std::lock_guard lock(drain_mutex_);  // who comes second waits until the first has applied its events
        const std::uint64_t forks = ForkGuard::forks();
        const Events events = take();
        for (std::size_t i = 0; i < events.count; ++i)
            invalidate(events.list[i]);
        if (forks_.load(std::memory_order_relaxed) != forks) invalidate(Event{0, SIZE_MAX});
        forks_.store(forks, std::memory_order_release);
        applied_.store(events.noted, std::memory_order_release);
    }

  private:
    static constexpr std::size_t capacity = 64;
    struct Events {
        std::array<Event, capacity> list;
        std::size_t count = 0;
        std::uint64_t noted = 0;  // of noted_, when they were taken
        void add(const Event& event);
    };
    Status start();
    void run(int events, int stop);
    Events take();
    // Waits until every unmapping that the kernel has begun has been noted.
    static void settle(int events);

    ForkGuard fork_;
    std::mutex lifetime_;  // of thread and descriptors
    File events_fd_, stop_;
    std::thread thread_;
    std::atomic<int> watching_{-1};  // events_fd_, while there is a thread

    std::mutex events_mutex_;
    Events events_;
    std::atomic<std::uint64_t> noted_{0};  // how often the thread has read events

    std::mutex drain_mutex_;
    std::atomic<std::uint64_t> applied_{0};  // noted_ of the events that have been invalidated
    std::atomic<std::uint64_t> forks_{ForkGuard::forks()};
};

}  // namespace offpath::memory
