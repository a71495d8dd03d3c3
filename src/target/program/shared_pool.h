// SharedPool: device memory for small blocks, which the program has mapped as well. It copies to and from
// them with memcpy, without a request to the host. Pages of a block that is released stay, so the next block
// has no page faults.
//
// Ownership: the pool's mapping here; the host's ends with the host. Threads: any.
#pragma once

#include "memory/file.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace offpath::target {

class SharedPool {
  public:
    static constexpr std::uint64_t pool_bytes = 32 << 20;
    static constexpr std::uint64_t most_bytes = pool_bytes / 16;  // of a block
    static constexpr std::uint64_t alignment = 128;

    // Has the host map the memory file; returns the pool's address there, or 0.
    using MapThere = std::function<std::uint64_t(int descriptor, std::uint64_t bytes)>;
    // Called once, before other threads use the object. Without success there is no memory in the pool.
    void open(const MapThere& map_there);

    // Returns a block's address on the device. 0: there is no room for it.
    std::uint64_t allocate(std::uint64_t bytes);
    // False: there is no such block.
    bool release(std::uint64_t address);
    // Where the program has `bytes` bytes of a block; null: they are not of one block.
    std::byte* find(std::uint64_t address, std::uint64_t bytes);

  private:
    using Ranges = std::map<std::uint64_t, std::uint64_t>;  // bytes by offset

    memory::Mapping mapping_;
    std::uint64_t there_ = 0;  // the pool's address on the device; 0: there is no pool
    std::mutex mutex_;
    Ranges free_, blocks_;
};

}  // namespace offpath::target
