// HostAllocator: the memory that a client shares with its device: memory files, mapped here and, after the
// client has sent their descriptors, by the proxy. Every allocation is a region with an id that is never used
// again. Its memory is found by address through RegionTable. Ownership: allocations live until release() or
// the allocator's end; those that are kept are the process's from then on. Threads: all calls from any
// thread.
//
// fork: the memory is shared, so a child that does not exec sees the parent's bytes, and writes to them. The
// child must not call anything here (fork_guard.h tells it apart).
#pragma once

#include "memory/file.h"
#include "memory/region_table.h"

#include <map>
#include <mutex>

namespace offpath::memory {

class HostAllocator {
  public:
    // From 2 MiB on. collapse moves memory into huge pages even where the system does not grant them for the
    // asking; it doubles the time of an allocation.
    enum class HugePages : std::uint8_t { none, advise, collapse };
    struct Options {
        HugePages huge_pages = HugePages::advise;
        bool prefault = true;  // pages are made present, on the caller's NUMA node, by allocate()
    };
    struct Allocation {
        std::uint64_t region = 0;
        void* address = nullptr;
        std::size_t bytes = 0;  // whole pages
        int fd = -1;            // to send to the proxy; stays the allocator's
    };

    HostAllocator();
    explicit HostAllocator(const Options& options);
    HostAllocator(const HostAllocator&) = delete;
    HostAllocator& operator=(const HostAllocator&) = delete;
    // Unmaps what is there, unless it is kept.
    ~HostAllocator();

    // Zeroed memory of at least `bytes` bytes (> 0), page-aligned. It is not in the region table yet:
    // publish() puts it there once the proxy has acknowledged the region. Errors: invalid, memory, system.
    Status allocate(std::size_t bytes, Allocation& allocation);
    // invalid: it overlaps what is there, which only adopted memory can.
    Status publish(const Allocation& allocation);
    // Memory of the program's own as a region: an id for it, to be published and retracted. It stays the
    // program's.
    Allocation adopt(void* address, std::size_t bytes);
    void retract(std::uint64_t region) { table_.erase(region); }

    // Freeing takes two steps around the revocation at the proxy: withdraw() finds the allocation that starts
    // at `address` and takes it out of the table (invalid: none), so that no new transfer names the region;
    // release() unmaps it.
    Status withdraw(const void* address, Allocation& allocation);
    void release(const Allocation& allocation);

    // The allocation that starts at `address` stays mapped when the allocator ends. invalid: none.
    Status keep(const void* address);

    // Regions that are published, by address.
    const RegionTable& table() const { return table_; }
    // All allocations, e.g. to send them to another proxy.
    template <typename Visit>
    void for_each(Visit&& visit) const {
        std::lock_guard lock(mutex_);
        for (const auto& [address, held] : held_)
            visit(held.allocation);
    }

  private:
    struct Held {
        Allocation allocation;
        File file;
        Mapping mapping;
        bool kept = false;
    };
    const Options options_;
    RegionTable table_;
    mutable std::mutex mutex_;
    std::map<const void*, Held> held_;
    std::uint64_t next_region_ = 1;
};

}  // namespace offpath::memory
