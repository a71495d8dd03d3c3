#include "life.h"

#include "core.h"
#include "device.h"
#include "device_loss.h"
#include "exchange.h"
#include "node_peers.h"
#include "peer_watch.h"
#include "recovery.h"
#include "symmetric_files.h"

#include <offpath/loss.h>

#include <algorithm>

namespace offpath::shmem {

World world;

int my_pe() {
    return world.pe;
}
int n_pes() {
    return world.pes;
}
bool running() {
    return world.running;
}
bool multithreaded() {
    return world.threads;
}

void meet() {
    must(try_to_meet(), "a barrier");
}

offpath_status_t try_to_meet() {
    return waited_for([](offpath_request_h* request) { return offpath_ibarrier(world.team, request); });
}

namespace {

// Whether all PEs have made their symmetric memory.
bool all_are_ready() {
    return std::ranges::all_of(gather(static_cast<std::uint8_t>(world.ready ? 1 : 0)),
                               [](std::uint8_t one) { return one != 0; });
}

// As a new context, in which nothing is registered yet.
bool attach_context(std::uint64_t limit_ns) {
    files.regions = {};
    world.window = nullptr;
    if (offpath_context_attach_again(&world.context, limit_ns) != OFFPATH_OK) return false;
    must(offpath_team_world(world.context, &world.team), "the team of all PEs");
    return true;
}

}  // namespace

bool attach_to_present(std::uint64_t limit_ns) {
    if (offpath_context_end_session(world.context) != OFFPATH_OK) return false;
    forget_peer_watch();
    if (!attach_context(limit_ns)) return false;
    (void)all_are_ready();  // this PE is not
    return true;
}

bool attach_again(std::uint64_t limit_ns, void (*before_use)()) {
    if (!attach_context(limit_ns)) return false;
    if (!all_are_ready()) throw OthersStart{};
    must(offpath_window_create_dynamic(world.team, &world.window), "the window of symmetric memory");
    for (const SegmentId id : {heap_segment, data_segment})
        if (world.segments[id].bytes > 0) (void)attach_segment(id);
    before_use();
    meet();
    return true;
}

namespace {

void must_at_end(offpath_status_t status, const char* what) {
    // Behind the end of the window no PE has anything left to do for another one.
    const bool over = journal.on() && status == OFFPATH_ERR_PEER_LOST;
    if (status != OFFPATH_OK && !over && !goes_on_after(status)) fail_device(status, what);
}

// Waits for all operations and all PEs, and ends the window. The PEs of one node have met without the device
// before they come here. If a device is lost, other PEs may still need this one.
void end_window() {
    while (true) {
        quiet(world_context);
        offpath_status_t status = try_to_meet();
        if (status != OFFPATH_OK && recovered(status)) continue;
        if (status != OFFPATH_OK && !goes_on_after(status)) fail_device(status, "a barrier");
        status = offpath_window_destroy(world.window);
        if (status == OFFPATH_OK || !recovered_at_end(status)) {
            must_at_end(status, "the end of the window");
            return;
        }
    }
}

}  // namespace

void stop() {
    if (!world.running) return;
    end_window();
    world_context.pes = 0;
    world.running = false;
    for (offpath_region_h& region : files.regions) {
        if (region != nullptr && world.context != nullptr)
            must_at_end(offpath_mem_deregister(region), "the end of symmetric memory");
        region = nullptr;
    }
    close_peer_watch();
    // A script may start the next program as soon as this one has ended on this node. A launcher's server
    // that has only fences miscounts the ranks of a fence if it loses a connection meanwhile. So all PEs
    // close their connections before any PE ends.
    if (world.context != nullptr) {
        must(offpath_context_leave_launcher(world.context), "leaving the launcher");
        must_at_end(try_to_meet(), "a barrier");
        offpath_finalize(world.context);
    }
    close_recovery();
    close_peers();
    drop_heap();
    world.segments = {};
    files = {};
}

}  // namespace offpath::shmem
