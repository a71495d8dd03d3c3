// fence and quiet. The processor orders the loads and stores of this process; operations of the device are
// counted.
#include "device.h"
#include "device_loss.h"
#include "peer_watch.h"

#include <fmt/format.h>

namespace offpath::shmem {

namespace {

bool waits_for(const Context& context, const std::atomic<std::uint64_t>& count) {
    return context.finished.load(std::memory_order_acquire) < count.load(std::memory_order_acquire);
}

void wait_for_counted(Context& context) {
    const std::uint64_t started = context.started.load(std::memory_order_acquire);
    finish_counted();
    raise(context.finished, started);
}

// The context, or the library, does not exist.
[[noreturn]] void fail_nobody() {
    if (world_context.pes == 0) fail_life();
    fail("the context was destroyed before");
}

}  // namespace

void fail_life() {
    fail(world.pes == 0 ? "called before shmem_init" : "called after shmem_finalize");
}

void fail_device(offpath_status_t status, const char* what) {
    if (world.starting && is_loss(status)) throw LostAtStart{status};
    const std::string text = fmt::format("{}: {}", what, offpath_status_string(status));
    if (status == OFFPATH_ERR_PEER_LOST) fail_lost(text);
    fail(text, Code::operation);
}

void finish_counted() {
    if (ended(offpath_window_flush(world.window, OFFPATH_ALL_TARGETS, nullptr), "what was started before") &&
        journal.on())
        journal.clear();
}

void check_job() {
    if (!world.running) return;
    check_peers();
    if (is_without_device()) return;
    const offpath_status_t status =
        offpath_window_flush(world.window, static_cast<std::uint32_t>(world.pe), nullptr);
    if (status != OFFPATH_OK && !recovered(status) && !goes_on_after(status))
        fail_device(status, "the device");
}

void look_for_loss() {
    if (journal.on() && must_act_on_loss()) check_peers();
}

void quiet(Context& context) {
    if (context.pes == 0 || world_context.pes == 0) [[unlikely]]
        fail_nobody();
    if (!context.near.empty()) context.near.wait();
    if (!context.far.empty()) context.far.wait();
    if (waits_for(context, context.started)) wait_for_counted(context);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

void fence(Context& context) {
    if (context.pes == 0 || world_context.pes == 0) [[unlikely]]
        fail_nobody();
    // The device moves data within the node, and this process's own stores would overtake it.
    if (!context.near.empty()) context.near.wait();
    if (waits_for(context, context.last_near)) wait_for_counted(context);
    if (!context.far.empty() || waits_for(context, context.started))
        must(offpath_window_fence(world.window, OFFPATH_ALL_TARGETS), "a fence");
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace offpath::shmem
