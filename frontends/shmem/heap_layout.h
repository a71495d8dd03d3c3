// HeapLayout: which parts of the symmetric heap are in use, as offsets. Its answers depend only on the
// earlier calls, so PEs that make the same calls get the same offsets. It stores nothing in the heap itself.
// Best fit; adjacent free parts are merged. Pure. Threads: one at a time.
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
    // `alignment`: a power of two. none: no free part is large enough.
    std::size_t allocate(std::size_t bytes, std::size_t alignment = granularity);
    // False: no block begins at `offset`.
    bool free(std::size_t offset);
    // The bytes that were asked for; 0: no block begins at `offset`.
    std::size_t bytes_at(std::size_t offset) const;
    // Changes the size if the block has room. False: it has no room, or there is no block.
    bool resize(std::size_t offset, std::size_t bytes);
    // Begin and end, as asked for, of the block that contains `offset`; (none, 0): no block does.
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
