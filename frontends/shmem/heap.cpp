#include "heap.h"

#include "core.h"
#include "heap_layout.h"

#include <fmt/format.h>

#include <mutex>

namespace offpath::shmem {

namespace {

struct Heap {
    std::mutex mutex;
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
    HeapLayout layout;
};

Heap& heap() {
    static Heap instance;
    return instance;
}

std::size_t offset_of(const void* address) {
    return static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(address) -
                                    reinterpret_cast<std::uintptr_t>(heap().begin));
}

[[noreturn]] void fail_no_block(const void* address) {
    fail(fmt::format("{} is not the start of memory of the symmetric heap", fmt::ptr(address)));
}

}  // namespace

void open_heap(std::byte* begin, std::size_t bytes) {
    Heap& h = heap();
    h.begin = begin;
    h.bytes = bytes;
    h.layout = HeapLayout(bytes);
}

void close_heap() {
    open_heap(nullptr, 0);
}

void* heap_allocate(std::size_t bytes, std::size_t alignment) {
    Heap& h = heap();
    std::unique_lock lock(h.mutex);
    const std::size_t offset = h.layout.allocate(bytes, alignment);
    if (offset != HeapLayout::none) return h.begin + offset;
    const std::size_t largest = h.layout.largest_free();
    lock.unlock();
    complain_for_all(
        fmt::format(
            "{} bytes cannot be had: the symmetric heap has {} bytes (SHMEM_SYMMETRIC_SIZE), of which at "
            "most {} in one piece are free",
            bytes, h.bytes, largest),
        Code::limit);
    return nullptr;
}

void heap_free(void* address) {
    Heap& h = heap();
    std::unique_lock lock(h.mutex);
    const bool freed = h.layout.free(offset_of(address));
    lock.unlock();
    if (!freed) fail_no_block(address);
}

bool heap_has(const void* address) {
    Heap& h = heap();
    const std::lock_guard lock(h.mutex);
    return h.layout.bytes_at(offset_of(address)) != 0;
}

std::size_t heap_bytes_at(const void* address) {
    Heap& h = heap();
    std::unique_lock lock(h.mutex);
    const std::size_t bytes = h.layout.bytes_at(offset_of(address));
    lock.unlock();
    if (bytes == 0) fail_no_block(address);
    return bytes;
}

bool heap_resize(void* address, std::size_t bytes) {
    Heap& h = heap();
    std::lock_guard lock(h.mutex);
    return h.layout.resize(offset_of(address), bytes);
}

const char* heap_problem(const void* address, std::size_t bytes, std::size_t& block_bytes) {
    Heap& h = heap();
    std::lock_guard lock(h.mutex);
    const std::size_t offset = offset_of(address);
    block_bytes = 0;
    if (offset >= h.bytes) return nullptr;  // the library's own part, or another segment
    const auto [begin, end] = h.layout.block_around(offset);
    if (begin == HeapLayout::none) return "was not allocated";
    block_bytes = end - begin;
    return bytes <= end - offset ? nullptr : "overruns its block";
}

}  // namespace offpath::shmem
