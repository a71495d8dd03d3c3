// Converts a call's arguments to a place in a PE's memory, with the checks that every call needs: the PE is
// one of the context's, and the whole extent is symmetric. An error ends the job, out of line.
#pragma once

#include "core.h"
#include "world.h"

namespace offpath::shmem {

// Where a call takes place.
struct Place {
    const PeerSegment* segment = nullptr;
    std::size_t offset = 0;
    int pe = 0;  // of the world
    // Null: only the device reaches it.
    std::byte* here() const { return segment->mapped == nullptr ? nullptr : segment->mapped + offset; }
    std::uint64_t there() const { return segment->address + offset; }
};

inline std::size_t offset_in(SegmentId id, const void* address) {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) - world.segments[id].begin);
}
// Whether it is the library's part of the heap, which programs must not access.
inline bool is_own(SegmentId id, std::size_t offset) {
    return id == heap_segment && offset < internal_bytes;
}

[[noreturn]] void fail_pe(const Context& context, int pe);
[[noreturn]] void fail_address(const void* address, std::size_t bytes, int pe);
// Called with OFFPATH_SHMEM_CHECK=1. Checks that `symmetric` lies in one allocation and `local` is not null.
void check_place(const void* symmetric, std::size_t bytes, const void* local, int pe);

inline void check_pe(const Context& context, int pe) {
    if (static_cast<unsigned>(pe) >= static_cast<unsigned>(context.pes)) [[unlikely]]
        fail_pe(context, pe);
}

// `local`: the local buffer of the transfer, for the checks.
inline Place place_of(const Context& context, const void* address, std::size_t bytes, const void* local,
                      int pe) {
    check_pe(context, pe);
    const SegmentId id = segment_of(address, bytes);
    if (id == segment_count) [[unlikely]]
        fail_address(address, bytes, pe);
    const std::size_t offset = offset_in(id, address);
    if (is_own(id, offset) && !context.own) [[unlikely]]
        fail_address(address, bytes, pe);
    if (world.checks) [[unlikely]]
        check_place(address, bytes, local, pe);
    const int there = context.world(pe);
    return {&world.peers[static_cast<std::size_t>(there)].segments[id], offset, there};
}

}  // namespace offpath::shmem
