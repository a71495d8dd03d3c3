#include "target/host/device_memory.h"

#include <fmt/format.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace offpath::target {
namespace {

constexpr std::uint64_t alignment = 128;
constexpr std::uint64_t mapped_bytes = 1 << 20;  // a block of this size or more is a mapping of its own
constexpr std::uint64_t careful_bytes = 64 << 20;
constexpr std::uint64_t huge_page = 2 << 20;

// The bytes that the system can still give, or UINT64_MAX if it does not say.
std::uint64_t available() {
    std::ifstream facts("/proc/meminfo");
    std::string word;
    std::uint64_t kib = 0;
    while (facts >> word)
        if (word == "MemAvailable:" && facts >> kib) return kib << 10;
    return UINT64_MAX;
}

}  // namespace

Status DeviceMemory::allocate(std::uint64_t bytes, std::uint64_t& address, std::string& problem) {
    bytes = std::max<std::uint64_t>((bytes + alignment - 1) / alignment * alignment, alignment);
    // The kernel would promise more memory than there is, and later kill the process.
    const std::uint64_t left = bytes >= careful_bytes ? available() : UINT64_MAX;
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
