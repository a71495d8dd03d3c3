// The symmetric heap in shmem.h. Every call is a barrier of all PEs, so no PE uses memory that another one
// has not allocated yet or has freed.
#include "calls/definition.h"
#include "collectives/collectives.h"
#include "core.h"
#include "heap.h"
#include "memory_file.h"

#include <fmt/format.h>
#include <shmem.h>

#include <algorithm>
#include <cstring>

using namespace offpath::shmem;

namespace {

void must_run() {
    if (!running()) fail(n_pes() == 0 ? "called before shmem_init" : "called after shmem_finalize");
}

void* allocate(std::size_t bytes, std::size_t alignment) {
    must_run();
    if (bytes == 0) return nullptr;
    void* const result = heap_allocate(bytes, alignment);
    barrier_all();
    return result;
}

void release(void* address) {
    must_run();
    if (address == nullptr) return;
    (void)heap_bytes_at(address);  // ends the job for a wrong address before the barrier
    barrier_all();
    heap_free(address);
}

void* reallocate(void* address, std::size_t bytes) {
    must_run();
    if (address == nullptr) return allocate(bytes, 0);
    if (!heap_has(address)) {  // ends the job for a wrong address before the barrier
        complain(fmt::format("{} is not the start of memory of the symmetric heap", fmt::ptr(address)));
        return nullptr;
    }
    if (bytes == 0) {
        release(address);
        return nullptr;
    }
    barrier_all();
    const std::size_t former = heap_bytes_at(address);
    if (heap_resize(address, bytes)) {
        barrier_all();
        return address;
    }
    void* const result = heap_allocate(bytes, 0);
    if (result != nullptr) std::memcpy(result, address, std::min(former, bytes));
    barrier_all();
    if (result != nullptr) heap_free(address);
    return result;
}

static_assert(internal_bytes % largest_alignment == 0);

void* align(std::size_t alignment, std::size_t bytes) {
    must_run();
    if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
        complain_for_all(fmt::format("an alignment of {} bytes: a power of two is accepted", alignment));
        return nullptr;
    }
    if (alignment > largest_alignment) {
        complain_for_all(
            fmt::format("an alignment of {} bytes: at most {} are accepted", alignment, largest_alignment));
        return nullptr;
    }
    return allocate(bytes, alignment);
}

}  // namespace

DEFINE(void*, shmem_malloc, (size_t bytes)) {
    return allocate(bytes, 0);
}

DEFINE(void*, shmem_malloc_with_hints, (size_t bytes, long)) {
    return allocate(bytes, 0);
}

DEFINE(void*, shmem_calloc, (size_t count, size_t bytes)) {
    must_run();
    std::size_t all = 0;
    if (__builtin_mul_overflow(count, bytes, &all)) {
        complain_for_all(fmt::format("{} times {} bytes are larger than memory", count, bytes));
        return nullptr;
    }
    if (all == 0) return nullptr;
    void* const result = heap_allocate(all, 0);
    if (result != nullptr) std::memset(result, 0, all);
    barrier_all();
    return result;
}

DEFINE(void*, shmem_align, (size_t alignment, size_t bytes)) {
    return align(alignment, bytes);
}

DEFINE(void*, shmem_realloc, (void* address, size_t bytes)) {
    return reallocate(address, bytes);
}

DEFINE(void, shmem_free, (void* address)) {
    release(address);
}

DEFINE(void*, shmalloc, (size_t bytes)) {
    return allocate(bytes, 0);
}

DEFINE(void*, shmemalign, (size_t alignment, size_t bytes)) {
    return align(alignment, bytes);
}

DEFINE(void*, shrealloc, (void* address, size_t bytes)) {
    return reallocate(address, bytes);
}

DEFINE(void, shfree, (void* address)) {
    release(address);
}
