// HeapLayout: which parts of the symmetric heap are in use, as offsets. What it answers hangs on nothing but
// the calls before, so PEs that make the same calls get the same offsets; nothing of it lies in the heap.
// Best fit; neighbours that are free become one. Pure. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace offpath::shmem {

class HeapLayout {
  public:
    static constexpr std::size_t none = SIZE_MAX;
    static constexpr std::size_t granularity = 64;

    explicit HeapLayout(std::size_t bytes = 0);
    // `alignment`: a power of two. none: no part of the heap is large enough.
    std::size_t allocate(std::size_t bytes, std::size_t alignment = granularity);
    // False: no block begins there.
    bool free(std::size_t offset);
    // Bytes that were asked for; 0: no block begins there.
    std::size_t bytes_at(std::size_t offset) const;
    // Changes them where the block has room. False: it has not, or there is none.
    bool resize(std::size_t offset, std::size_t bytes);
    // Begin and end, as asked for, of the block in which `offset` lies; none, 0: it lies in none.
    std::pair<std::size_t, std::size_t> block_around(std::size_t offset) const;
    std::size_t largest_free() const;

  private:
    struct Block {
        std::size_t room = 0, asked = 0;
    };
    void add_free(std::size_t offset, std::size_t bytes);
    void remove_free(std::size_t offset, std::size_t bytes);

    std::map<std::size_t, Block> blocks_;
    std::map<std::size_t, std::size_t> free_;                     // bytes by offset
    std::set<std::pair<std::size_t, std::size_t>> free_by_size_;  // bytes, offset
};

}  // namespace offpath::shmem
