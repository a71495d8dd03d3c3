#include "target/program/shared_pool.h"

#include <algorithm>
#include <iterator>

namespace offpath::target {

void SharedPool::open(const MapThere& map_there) {
    memory::File file;
    if (memory::make_memory_file("offpath-target-pool", pool_bytes, file) != Status::ok ||
        memory::Mapping::map(file.get(), pool_bytes, mapping_) != Status::ok)
        return;
    there_ = map_there(file.get(), pool_bytes);
    if (there_ != 0)
        free_[0] = pool_bytes;
    else
        mapping_ = memory::Mapping();
}

// The first range that fits has the pages that were used most.
std::uint64_t SharedPool::allocate(std::uint64_t bytes) {
    if (there_ == 0 || bytes > most_bytes) return 0;
    bytes = std::max<std::uint64_t>((bytes + alignment - 1) / alignment * alignment, alignment);
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(free_.begin(), free_.end(), [&](const auto& range) { return range.second >= bytes; });
    if (found == free_.end()) return 0;
    const auto [offset, room] = *found;
    free_.erase(found);
    if (room > bytes) free_[offset + bytes] = room - bytes;
    blocks_[offset] = bytes;
    return there_ + offset;
}

bool SharedPool::release(std::uint64_t address) {
    if (there_ == 0 || address - there_ >= pool_bytes) return false;
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(address - there_);
    if (block == blocks_.end()) return false;
    auto range = free_.insert(*block).first;
    blocks_.erase(block);
    if (const auto next = std::next(range);
        next != free_.end() && range->first + range->second == next->first) {
        range->second += next->second;
        free_.erase(next);
    }
    if (range == free_.begin()) return true;
    if (const auto previous = std::prev(range); previous->first + previous->second == range->first) {
        previous->second += range->second;
        free_.erase(range);
    }
    return true;
}

std::byte* SharedPool::find(std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t offset = address - there_;
    if (there_ == 0 || offset >= pool_bytes) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto next = blocks_.upper_bound(offset);
    if (next == blocks_.begin()) return nullptr;
    const auto& [begin, room] = *std::prev(next);
    if (offset - begin > room || bytes > room - (offset - begin)) return nullptr;
    return mapping_.data() + offset;
}

}  // namespace offpath::target
