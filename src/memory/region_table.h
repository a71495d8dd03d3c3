// RegionTable: finds the region of an address, for every buffer that a client's call names. Threads: any
// number may call resolve(), which takes no locks and never waits for another reader. insert() and erase()
// take a mutex.
//
// Invariant: entries are sorted by address and do not overlap. A version number is odd while a writer moves
// entries, and readers validate it (a sequence lock). Outgrown arrays are kept until the table ends, because
// a reader may still be using one.
#pragma once

#include "memory/host_memory.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace offpath::memory {

class RegionTable {
  public:
    RegionTable();
    ~RegionTable();
    RegionTable(const RegionTable&) = delete;
    RegionTable& operator=(const RegionTable&) = delete;

    // invalid: empty, id 0, or overlapping a region in the table.
    Status insert(std::uint64_t region, const void* address, std::size_t bytes);
    // invalid: no such region.
    Status erase(std::uint64_t region);

    // Returns the buffer as a doorbell names it: inside one region, or region 0 and the plain address.
    HostRange resolve(const void* address, std::size_t bytes) const;
    std::size_t size() const { return count_.load(std::memory_order_acquire); }

  private:
    struct Entry {
        std::atomic<std::uintptr_t> start{0}, end{0};
        std::atomic<std::uint64_t> region{0};
    };
    struct Array {
        explicit Array(std::size_t n) : capacity(n), entries(new Entry[n]) {}
        std::size_t capacity;
        std::unique_ptr<Entry[]> entries;
    };
    static void move(Entry& to, const Entry& from);

    std::mutex mutex_;
    std::vector<std::unique_ptr<Array>> arrays_;  // the last one is in use
    std::atomic<std::uint64_t> version_{0};
    std::atomic<const Array*> array_;
    std::atomic<std::size_t> count_{0};
};

}  // namespace offpath::memory
