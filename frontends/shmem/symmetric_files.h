// The files that hold this PE's symmetric memory, and their regions at the device. Threads: one.
#pragma once

#include "memory_file.h"
#include "world.h"

namespace offpath::shmem {

struct SymmetricFiles {
    std::array<MemoryFile, segment_count> segments;
    std::array<offpath_region_h, segment_count> regions{};
    std::byte* heap = nullptr;      // the whole heap, including the library's part
    std::size_t internal_used = 0;  // of that part
};
extern SymmetricFiles files;

// Gives a segment to the device, which maps it.
offpath_status_t share(SegmentId id);
// Exposes the segment in the window of symmetric memory. Returns whether the device has it mapped.
bool attach_segment(SegmentId id);
// The heap is gone. Operations on it must have ended.
void drop_heap();

}  // namespace offpath::shmem
