#include "target/host/device_memory.h"

#include "target/host/memory_left.h"

#include <fmt/format.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

namespace offpath::target {
namespace {

constexpr std::uint64_t alignment = 128;
constexpr std::uint64_t mapped_bytes = 1 << 20;    // a block of this size or more is a mapping of its own
constexpr std::uint64_t careful_bytes = 16 << 20;  // given without a look at what is left
constexpr std::uint64_t huge_page = 2 << 20;

}  // namespace

// What the system can still give, less what it has promised before; UINT64_MAX: enough, or not known.
std::uint64_t DeviceMemory::left_for(std::uint64_t bytes) {
    std::lock_guard lock(mutex_);
    unchecked_ += std::min(bytes, careful_bytes);
    if (unchecked_ < careful_bytes) return UINT64_MAX;
    const std::uint64_t left = memory_left(root_);
    if (left == UINT64_MAX) return left;
    const std::uint64_t untouched = in_use_ - std::min(in_use_, memory_present());
    const std::uint64_t really = left - std::min(left, untouched);
    // While memory is short, every block is looked at.
    if (bytes <= really) unchecked_ = 0;
    return really;
}

Status DeviceMemory::allocate(std::uint64_t bytes, std::uint64_t& address, std::string& problem) {
    bytes = std::max<std::uint64_t>((bytes + alignment - 1) / alignment * alignment, alignment);
    const std::uint64_t left = left_for(bytes);
    void* block = nullptr;
    if (bytes <= left) {
        if (bytes < mapped_bytes) {
            block = std::aligned_alloc(alignment, bytes);
        } else {
            block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (block == MAP_FAILED)
                block = nullptr;
            else if (bytes >= huge_page)
                madvise(block, bytes, MADV_HUGEPAGE);
        }
    }
    if (block == nullptr) {
        problem = fmt::format("{} bytes of device memory are not there: {} are in use", bytes, in_use());
        if (left != UINT64_MAX) problem += fmt::format(", and the device has {} left", left);
        return Status::memory;
    }
    address = reinterpret_cast<std::uint64_t>(block);
    std::lock_guard lock(mutex_);
    blocks_[address] = bytes;
    in_use_ += bytes;
    return Status::ok;
}

bool DeviceMemory::release(std::uint64_t address) {
    std::uint64_t bytes = 0;
    {
        std::lock_guard lock(mutex_);
        const auto found = blocks_.find(address);
        if (found == blocks_.end()) return false;
        bytes = found->second;
        in_use_ -= bytes;
        blocks_.erase(found);
    }
    void* const block = reinterpret_cast<void*>(address);
    if (bytes < mapped_bytes)
        std::free(block);
    else
        munmap(block, bytes);
    return true;
}

std::uint64_t DeviceMemory::in_use() const {
    std::lock_guard lock(mutex_);
    return in_use_;
}

}  // namespace offpath::target
