// fence and quiet. Loads and stores of this process are ordered by the processor; what the device does is
// counted.
#include "device.h"

#include <fmt/format.h>

namespace offpath::shmem {

namespace {

// Another thread may be waiting for a later count.
void raise(std::atomic<std::uint64_t>& finished, std::uint64_t to) {
    std::uint64_t seen = finished.load(std::memory_order_relaxed);
    while (seen < to && !finished.compare_exchange_weak(seen, to, std::memory_order_acq_rel)) {
    }
}

void wait_for_device(Context& context) {
    const std::uint64_t started = context.started.load(std::memory_order_acquire);
    const std::uint64_t near = context.started_near.load(std::memory_order_acquire);
    must(offpath_window_flush(world.window, OFFPATH_ALL_TARGETS, nullptr), "what was started before");
    raise(context.finished_near, near);
    raise(context.finished, started);
}

bool pending(const std::atomic<std::uint64_t>& started, const std::atomic<std::uint64_t>& finished) {
    return finished.load(std::memory_order_acquire) < started.load(std::memory_order_acquire);
}

[[noreturn]] void fail_life() {
    fail(world.pes == 0 ? "called before shmem_init" : "called after shmem_finalize");
}

}  // namespace

void fail_device(offpath_status_t status, const char* what) {
    fail(fmt::format("{}: {}", what, offpath_status_string(status)));
}

void quiet(Context& context) {
    if (world_context.pes == 0) [[unlikely]]
        fail_life();
    if (pending(context.started, context.finished)) wait_for_device(context);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

void fence(Context& context) {
    if (world_context.pes == 0) [[unlikely]]
        fail_life();
    // What this process stores itself would overtake what the device moves within the node.
    if (pending(context.started_near, context.finished_near)) {
        wait_for_device(context);
    } else if (pending(context.started, context.finished)) {
        must(offpath_window_fence(world.window, OFFPATH_ALL_TARGETS), "a fence");
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace offpath::shmem
