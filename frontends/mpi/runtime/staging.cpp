#include "staging.h"

#include <algorithm>
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
};
Pool pool;

void give_back(const StagingBlock& block) {
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
    if (offpath_mem_alloc(runtime().context, wanted, &block.address) == OFFPATH_OK) block.bytes = wanted;
    return block;
}

void release_staging(StagingBlock& block) {
    if (block.address == nullptr) return;
    const StagingBlock old = block;
    block = {};
    {
        const std::lock_guard lock(pool.mutex);
        if (pool.free_bytes + old.bytes <= kept_bytes_cap) {
            pool.free.push_back(old);
            pool.free_bytes += old.bytes;
            return;
        }
    }
    give_back(old);
}

void close_staging() {
    const std::lock_guard lock(pool.mutex);
    for (const StagingBlock& block : pool.free)
        give_back(block);
    pool.free.clear();
    pool.free_bytes = 0;
}

}  // namespace offpath::mpi
