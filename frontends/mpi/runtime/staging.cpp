#include "staging.h"

#include <offpath/loss.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "runtime.h"

namespace offpath::mpi {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t kept_bytes_cap = std::size_t{256} << 20;

struct Pool {
    std::mutex mutex;
    std::vector<StagingBlock> free;
    std::size_t free_bytes = 0;
    std::vector<void*> without_device;  // blocks in use or free that the device does not map
};
Pool pool;

bool is_device_lost() {
    return offpath_context_device_state(runtime().context) != OFFPATH_DEVICE_SERVES;
}

// The next two need the mutex.
void* plain_memory(std::size_t bytes) {
    void* const memory = std::aligned_alloc(page, bytes);
    if (memory != nullptr) pool.without_device.push_back(memory);
    return memory;
}

void give_back(const StagingBlock& block) {
    if (std::erase(pool.without_device, block.address) != 0) return std::free(block.address);
    offpath_mem_free(runtime().context, block.address);
}

}  // namespace

StagingBlock acquire_staging(std::size_t bytes) {
    const std::size_t wanted = (bytes + page - 1) / page * page;
    {
        const std::lock_guard lock(pool.mutex);
        auto best = pool.free.end();
        for (auto block = pool.free.begin(); block != pool.free.end(); ++block) {
            if (block->bytes < wanted || block->bytes / 2 > wanted) continue;
            if (best == pool.free.end() || block->bytes < best->bytes) best = block;
        }
        if (best != pool.free.end()) {
            const StagingBlock block = *best;
            pool.free_bytes -= block.bytes;
            *best = pool.free.back();
            pool.free.pop_back();
            return block;
        }
    }
    StagingBlock block;
    if (is_device_lost() || offpath_mem_alloc(runtime().context, wanted, &block.address) != OFFPATH_OK) {
        // Ordinary memory serves the host's MPI, and also a device that has no room for more of its own.
        const std::lock_guard lock(pool.mutex);
        block.address = plain_memory(wanted);
    }
    if (block.address != nullptr) block.bytes = wanted;
    return block;
}

void release_staging(StagingBlock& block) {
    if (block.address == nullptr) return;
    const StagingBlock old = block;
    block = {};
    const std::lock_guard lock(pool.mutex);
    if (pool.free_bytes + old.bytes > kept_bytes_cap) return give_back(old);
    pool.free.push_back(old);
    pool.free_bytes += old.bytes;
}

void close_staging() {
    const std::lock_guard lock(pool.mutex);
    for (const StagingBlock& block : pool.free)
        give_back(block);
    pool.free.clear();
    pool.free_bytes = 0;
}

}  // namespace offpath::mpi
