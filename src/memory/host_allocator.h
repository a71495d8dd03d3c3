// HostAllocator: the memory that a client shares with its device. It consists of memory files, mapped here
// and, once the client has sent their descriptors, in the proxy. Every allocation is a region with an id that
// is never reused. RegionTable finds a region by address.
//
// Ownership: an allocation lives until release() or the allocator's end. A kept allocation belongs to the
// process from then on. Threads: all calls from any thread.
//
// fork: the child gets copies of its own (child_copies.h). It must not call anything here.
#pragma once

#include "memory/file.h"
#include "memory/region_table.h"

#include <map>
#include <mutex>

namespace offpath::memory {

class HostAllocator {
  public:
    // allocate() makes the pages of allocations up to this size present, on the caller's NUMA node. The pages
    // of larger ones come at first use, since programs reserve more than they use.
    static constexpr std::size_t prefaulted_bytes = std::size_t{1} << 20;
    struct Allocation {
        std::uint64_t region = 0;
        void* address = nullptr;
        std::size_t bytes = 0;  // whole pages
        int fd = -1;            // to send to the proxy; the allocator keeps ownership
    };

    HostAllocator() = default;
    HostAllocator(const HostAllocator&) = delete;
    HostAllocator& operator=(const HostAllocator&) = delete;
    // Unmaps every allocation that is not kept.
    ~HostAllocator();

    // Allocates at least `bytes` bytes (> 0) of zeroed, page-aligned memory. The region is not in the table
    // yet: publish() adds it once the proxy has acknowledged the region. Errors: invalid, memory, system.
    Status allocate(std::size_t bytes, Allocation& allocation);
    // invalid: the region overlaps a published one, which only adopted memory can do.
    Status publish(const Allocation& allocation);
    // Gives the program's own memory a region id, for publish() and retract(). The program keeps ownership of
    // the memory.
    Allocation adopt(void* address, std::size_t bytes);
    void retract(std::uint64_t region) { table_.erase(region); }

    // Freeing takes two steps, because the proxy must revoke the region between them. withdraw() finds the
    // allocation that starts at `address` and removes it from the table, so that no new transfer names the
    // region (invalid: there is none). release() unmaps it.
    Status withdraw(const void* address, Allocation& allocation);
    void release(const Allocation& allocation);

    // Keeps the allocation that starts at `address` mapped when the allocator ends. invalid: there is none.
    Status keep(const void* address);

    // The published regions, by address.
    const RegionTable& table() const { return table_; }
    // Visits all allocations, e.g. to send them to another proxy.
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
    RegionTable table_;
    mutable std::mutex mutex_;
    std::map<const void*, Held> held_;
    std::uint64_t next_region_ = 1;
};

}  // namespace offpath::memory
