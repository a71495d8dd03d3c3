#include "heap_layout.h"

#include <algorithm>

namespace offpath::shmem {

namespace {

std::size_t round_up(std::size_t value, std::size_t unit) {
    return (value + unit - 1) / unit * unit;
}

}  // namespace

HeapLayout::HeapLayout(std::size_t bytes) {
    if (const std::size_t whole = bytes / granularity * granularity; whole > 0) add_free(0, whole);
}

void HeapLayout::add_free(std::size_t offset, std::size_t bytes) {
    free_.emplace(offset, bytes);
    free_by_size_.emplace(bytes, offset);
}

void HeapLayout::remove_free(std::size_t offset, std::size_t bytes) {
    free_.erase(offset);
    free_by_size_.erase({bytes, offset});
}

std::size_t HeapLayout::allocate(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0 || bytes > SIZE_MAX - granularity) return none;
    const std::size_t room = round_up(bytes, granularity);
    alignment = std::max(alignment, granularity);
    for (auto it = free_by_size_.lower_bound({room, 0}); it != free_by_size_.end(); ++it) {
        const auto [found, offset] = *it;
        const std::size_t begin = round_up(offset, alignment);
        if (begin < offset || begin - offset > found - room) continue;
        remove_free(offset, found);
        if (begin > offset) add_free(offset, begin - offset);
        if (const std::size_t end = offset + found; begin + room < end)
            add_free(begin + room, end - begin - room);
        blocks_.emplace(begin, Block{room, bytes});
        return begin;
    }
    return none;
}

bool HeapLayout::free(std::size_t offset) {
    const auto block = blocks_.find(offset);
    if (block == blocks_.end()) return false;
    std::size_t begin = offset, bytes = block->second.room;
    blocks_.erase(block);
    const auto next = free_.lower_bound(begin);
    if (next != free_.begin()) {
        if (const auto [before, length] = *std::prev(next); before + length == begin) {
            remove_free(before, length);
            begin = before;
            bytes += length;
        }
    }
    if (const auto after = free_.find(begin + bytes); after != free_.end()) {
        const std::size_t length = after->second;
        remove_free(begin + bytes, length);
        bytes += length;
    }
    add_free(begin, bytes);
    return true;
}

std::size_t HeapLayout::bytes_at(std::size_t offset) const {
    const auto block = blocks_.find(offset);
    return block == blocks_.end() ? 0 : block->second.asked;
}

bool HeapLayout::resize(std::size_t offset, std::size_t bytes) {
    const auto block = blocks_.find(offset);
    if (block == blocks_.end() || bytes == 0 || bytes > block->second.room) return false;
    block->second.asked = bytes;
    return true;
}

std::pair<std::size_t, std::size_t> HeapLayout::block_around(std::size_t offset) const {
    auto block = blocks_.upper_bound(offset);
    if (block == blocks_.begin()) return {none, 0};
    --block;
    const std::size_t end = block->first + block->second.asked;
    return offset < end ? std::pair(block->first, end) : std::pair(none, std::size_t{0});
}

std::size_t HeapLayout::largest_free() const {
    return free_by_size_.empty() ? 0 : free_by_size_.rbegin()->first;
}

}  // namespace offpath::shmem
