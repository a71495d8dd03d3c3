// What this process knows of itself and of all PEs, from start() to stop(). Symmetric memory comes in two
// segments: the heap, and the writable data of the executable. A segment has the same size on every PE; the
// same place in it belongs to the same object. Addresses may differ from PE to PE.
//
// Threads: written by start() and stop() only, so no lock guards it.
#pragma once

#include <offpath/offpath.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace offpath::shmem {

enum SegmentId : std::uint8_t { heap_segment, data_segment, segment_count };

// A segment of this process.
struct Segment {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;  // 0: there is none
};

// A segment of a PE, seen from this process.
struct PeerSegment {
    std::byte* mapped = nullptr;  // where it is mapped here; null: the device moves it
    std::uint64_t address = 0;    // at the PE
    // Its proxy reaches it by a pointer, with atomic instructions.
    bool shared = false;
    // AMOs on it are atomic instructions of this process: mapped and shared.
    bool atomics_here = false;
};

struct Peer {
    std::array<PeerSegment, segment_count> segments;
};

struct World {
    bool running = false;
    bool threads = false;  // SHMEM_THREAD_MULTIPLE
    bool checks = false;   // OFFPATH_SHMEM_CHECK
    int thread_level = 0;  // as the program was told
    int pe = 0, pes = 0;
    std::array<Segment, segment_count> segments;
    std::vector<Peer> peers;
    // Non-blocking transfers within the node go to the device from this size on.
    std::size_t near_device_bytes = 0;

    offpath_context_h context = nullptr;
    offpath_team_h team = nullptr;
    offpath_window_h window = nullptr;  // dynamic: both segments of every PE, by their addresses there
};
extern World world;

// The segment of this process in which all of [address, address + bytes) lies; segment_count: none.
inline SegmentId segment_of(const void* address, std::size_t bytes) {
    for (const SegmentId id : {heap_segment, data_segment}) {
        const Segment& segment = world.segments[id];
        const auto offset =
            reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(segment.begin);
        if (offset < segment.bytes && bytes <= segment.bytes - offset) return id;
    }
    return segment_count;
}

}  // namespace offpath::shmem
