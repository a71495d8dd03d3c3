// What this process knows about itself and all PEs, from start() to stop(). Symmetric memory has two
// segments: the heap, and the writable data of the executable. A segment has the same size on every PE, and
// the same offset in it belongs to the same object. Addresses may differ from PE to PE.
//
// Threads: only start() and stop() write it, so it needs no lock.
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

// A segment of another PE, as this process sees it.
struct PeerSegment {
    std::byte* mapped = nullptr;  // where it is mapped here; null: only the device reaches it
    std::uint64_t address = 0;    // its address at the PE
    // The PE's proxy reaches it through a pointer, and uses atomic instructions.
    bool shared = false;
    // AMOs on it are atomic instructions of this process, because it is mapped and shared.
    bool atomics_here = false;
};

struct Peer {
    int process = 0;  // of a PE of this node; 0: it is not visible here
    std::array<PeerSegment, segment_count> segments;
};

struct World {
    bool starting = false;  // a loss throws LostAtStart
    bool ready = false;     // symmetric memory is made
    bool running = false;
    bool threads = false;  // SHMEM_THREAD_MULTIPLE
    bool checks = false;   // OFFPATH_SHMEM_CHECK
    int thread_level = 0;  // as reported to the program
    int pe = 0, pes = 0;
    std::array<Segment, segment_count> segments;
    std::vector<Peer> peers;
    // From this size on, non-blocking transfers within the node go to the device.
    std::size_t near_device_bytes = 0;

    offpath_context_h context = nullptr;
    offpath_team_h team = nullptr;
    offpath_window_h window = nullptr;  // dynamic: both segments of every PE, by their addresses there
};
extern World world;

// A device was lost while the job starts, so start() begins again.
struct LostAtStart {
    offpath_status_t status;
};

// The segment of this process that contains all of [address, address + bytes); segment_count: none does.
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
