#include "place.h"

#include "heap.h"

#include <fmt/format.h>

namespace offpath::shmem {

void fail_pe(const Context& context, int pe) {
    if (!running()) fail_life();
    if (context.pes == 0) fail("the context was destroyed before");
    fail(fmt::format("PE {} is out of range: 0 to {}", pe, context.pes - 1));
}

void fail_address(const void* address, std::size_t bytes, int pe) {
    const Segment& heap = world.segments[heap_segment];
    const Segment& data = world.segments[data_segment];
    const std::byte* const user_heap = heap.begin + (heap.bytes == 0 ? 0 : internal_bytes);
    // If part of the range is symmetric, the fault is in the size rather than the address.
    for (const Segment& segment : {heap, data}) {
        const auto offset =
            reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(segment.begin);
        const bool own = segment.begin == heap.begin && offset < internal_bytes;
        if (offset < segment.bytes && !own)
            fail(fmt::format("{} bytes at {} of PE {} overrun symmetric memory, which ends after {} bytes",
                             bytes, fmt::ptr(address), pe, segment.bytes - offset));
    }
    fail(fmt::format("{} bytes at {} for PE {} are not symmetric: the heap is {} to {}, static data {} to {}",
                     bytes, fmt::ptr(address), pe, fmt::ptr(user_heap), fmt::ptr(heap.begin + heap.bytes),
                     fmt::ptr(data.begin), fmt::ptr(data.begin + data.bytes)));
}

void check_place(const void* symmetric, std::size_t bytes, const void* local, int pe) {
    if (local == nullptr && bytes > 0) fail(fmt::format("the local buffer of {} bytes is null", bytes));
    std::size_t block_bytes = 0;
    if (const char* problem = heap_problem(symmetric, bytes, block_bytes); problem != nullptr)
        fail(fmt::format("{} bytes at {} of PE {}: this {} ({} bytes)", bytes, fmt::ptr(symmetric), pe,
                         problem, block_bytes));
}

bool is_symmetric(const void* address, std::size_t bytes) {
    const SegmentId id = segment_of(address, bytes);
    return id != segment_count && !is_own(id, offset_in(id, address));
}

void check_variables(const void* address, std::size_t bytes) {
    if (!is_symmetric(address, bytes)) fail_address(address, bytes, world.pe);
}

void* pointer(const void* dest, int pe) {
    const SegmentId id = segment_of(dest, 1);
    if (id == segment_count || pe < 0 || pe >= world.pes) return nullptr;
    std::byte* const mapped = world.peers[static_cast<std::size_t>(pe)].segments[id].mapped;
    if (mapped == nullptr) return nullptr;
    return mapped + offset_in(id, dest);
}

}  // namespace offpath::shmem
