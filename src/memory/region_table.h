// RegionTable: address -> region, for every buffer that a client's call names. Threads: resolve() from any
// number, without locks and without waiting for one another; insert and erase take a mutex. Invariant:
// entries are sorted by address and do not overlap. Readers validate a version that is odd while a writer
// moves entries (a sequence lock); outgrown arrays are kept until the table ends, since a reader may still be
// in one.
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

    // invalid: empty, id 0, or overlapping a region that is there.
    Status insert(std::uint64_t region, const void* address, std::size_t bytes);
    // invalid: no such region.
    Status erase(std::uint64_t region);

    // The buffer as a doorbell names it: inside one region, or region 0 and the plain address.
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
