#include "symmetric_files.h"

#include "base/child_copies.h"
#include "core.h"
#include "device.h"
#include "heap.h"

#include <fmt/format.h>

namespace offpath::shmem {

SymmetricFiles files;

offpath_status_t share(SegmentId id) {
    const Segment& segment = world.segments[id];
    return offpath_mem_share(world.context, files.segments[id].get(), segment.begin, segment.bytes,
                             &files.regions[id]);
}

namespace {

// Registers the segment so that the device maps it too; if that is not possible, it is ordinary memory.
bool is_mapped_by_device(SegmentId id) {
    const Segment& segment = world.segments[id];
    if (!files.segments[id]) return false;
    if (files.regions[id] == nullptr) must(share(id), "sharing symmetric memory with the device");
    offpath_back_end_t back_end{};
    offpath_progress_t progress{};
    must(offpath_mem_query(world.context, segment.begin, segment.bytes, &back_end, &progress),
         "offpath_mem_query");
    return back_end == OFFPATH_BACK_END_MAP;
}

}  // namespace

bool attach_segment(SegmentId id) {
    const Segment& segment = world.segments[id];
    const bool shared = is_mapped_by_device(id);
    must(offpath_window_attach(world.window, segment.begin, segment.bytes), "the window of symmetric memory");
    return shared;
}

void drop_heap() {
    close_heap();
    child_copies::forget(files.heap);
    unmap(files.heap, world.segments[heap_segment].bytes);
    files.heap = nullptr;
    files.segments[heap_segment] = {};
    files.internal_used = 0;
    world.segments[heap_segment] = {};
}

void* internal_alloc(std::size_t bytes) {
    const std::size_t begin = files.internal_used;
    const std::size_t room = (bytes + 63) / 64 * 64;
    if (room > internal_bytes - begin)
        fail(fmt::format("{} bytes of the library's own symmetric memory: {} of {} are in use", bytes, begin,
                         internal_bytes));
    files.internal_used += room;
    return files.heap + begin;
}

}  // namespace offpath::shmem
