#include "windows.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "communicators/counters.h"
#include "host_or_device.h"
#include "p2p/parcel_progress.h"
#include "requests/offloaded_requests.h"
#include "runtime/backoff.h"
#include "runtime/losses.h"
#include "runtime/runtime.h"
#include "runtime/summary_file.h"
#include "window_creation.h"
#include "window_handles.h"
#include "window_loss.h"

namespace offpath::mpi {
namespace {

std::atomic<std::uint64_t> operations{0};
std::atomic<std::uint64_t> moved_bytes{0};
int record_keyval = MPI_KEYVAL_INVALID;

}  // namespace

int window_keyval() {
    return record_keyval;
}

Window* record_of(MPI_Win win) {
    if (windows_served.load(std::memory_order_relaxed) == 0 || !active() || win == MPI_WIN_NULL)
        return nullptr;
    void* value = nullptr;
    int found = 0;
    PMPI_Win_get_attr(win, record_keyval, static_cast<void*>(&value), &found);
    if (found != 0) return static_cast<Window*>(value);
    return ending_window != nullptr && ending_window->handle == win ? ending_window : nullptr;
}

Window* look_up_window(MPI_Win win) {
    const std::uint32_t ended = outstanding.windows_ended;
    Window* window = record_of(win);
    if (window == nullptr || !window->live) return nullptr;
    latest_window = {win, window, ended};
    return window;
}

int raise(const Window& window, int error) {
    PMPI_Win_call_errhandler(window.handle, error);
    return error;
}

int error_of(offpath_status_t status) {
    if (status != OFFPATH_OK)
        warn(Code::operation, fmt::format("rank {}: a one-sided operation failed: {}", runtime().rank,
                                          offpath_status_string(status)));
    if (status == OFFPATH_ERR_PEER_LOST) any_loss.store(true, std::memory_order_relaxed);
    switch (status) {
        case OFFPATH_OK:
            return MPI_SUCCESS;
        case OFFPATH_ERR_ACCESS:
            return MPI_ERR_RMA_RANGE;
        case OFFPATH_ERR_MEMORY:
            return MPI_ERR_NO_MEM;
        case OFFPATH_ERR_INVALID:
            return MPI_ERR_RMA_SYNC;
        case OFFPATH_ERR_UNSUPPORTED:
            return MPI_ERR_OP;
        default:
            return MPI_ERR_OTHER;
    }
}

offpath_status_t wait_for(offpath_request_h request) {
    offpath_status_t status = offpath_request_test(request);
    for (Backoff backoff; status == OFFPATH_IN_PROGRESS; status = offpath_request_test(request)) {
        poll();
        p2p::poll();
        backoff.pause(request);
    }
    offpath_request_free(request);
    return status;
}

namespace {

// Waits for the flushes of other threads with numbers up to `last` that unpack what they have taken.
void wait_for_unpacking(Window& window, std::uint64_t last) {
    if (!runtime().threads) return;
    const auto others = [&] {
        const std::lock_guard lock(window.mutex);
        return std::ranges::any_of(window.unpacking, [&](std::uint64_t number) { return number <= last; });
    };
    for (Backoff backoff; others(); backoff.pause())
        poll();
}

// What a flush of the target completes and must unpack. `number` is its number in `unpacking`, or that of the
// latest one.
std::vector<Window::Held> take_held(Window& window, int target, std::uint64_t& number) {
    std::vector<Window::Held> taken;
    const std::lock_guard lock(window.mutex);
    if (target == all_targets) window.pieces_told = 0;
    std::erase_if(window.held, [&](Window::Held& held) {
        if (target != all_targets && held.target != target) return false;
        window.held_bytes -= held.block.bytes;
        taken.push_back(std::move(held));
        return true;
    });
    number = window.unpackings;
    if (!taken.empty() && runtime().threads) window.unpacking.push_back(number = ++window.unpackings);
    return taken;
}

// They are unpacked, or have run again.
void release_held(Window& window, std::vector<Window::Held>& taken, std::uint64_t number) {
    for (Window::Held& held : taken)
        release_staging(held.block);
    if (taken.empty() || !runtime().threads) return;
    const std::lock_guard lock(window.mutex);
    std::erase(window.unpacking, number);
}

}  // namespace

offpath_status_t flush(Window& window, int target) {
    LossGuard guard(window);
    if (has_departed(window)) {
        const offpath_status_t status = flush_departed(window, target);
        guard.unlock();
        wait_for_unpacking(window, UINT64_MAX);
        return status;
    }
    std::uint64_t number = 0;
    std::vector<Window::Held> taken = take_held(window, target, number);
    const std::uint64_t latest = latest_operation(window);
    offpath_request_h request = nullptr;
    const auto rank = target == all_targets ? OFFPATH_ALL_TARGETS : static_cast<std::uint32_t>(target);
    offpath_status_t status = offpath_window_flush(window.device, rank, &request);
    guard.unlock();
    if (status == OFFPATH_OK) status = wait_for(request);
    for (const Window::Held& held : taken)
        if (status == OFFPATH_OK && held.elements.shape != nullptr)
            held.elements.unpack(held.block.address, held.to);
    // Another flush may have taken what this one completes. If it fails, those operations must still be
    // noted.
    wait_for_unpacking(window, taken.empty() ? number : number - 1);
    // The code below must see what the target's proxy wrote here before it answered.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (status == OFFPATH_OK) status = note_flushed(window, target, latest);
    if (status != OFFPATH_OK) status = depart_after(window, status);
    // A device that serves may write to them until then.
    release_held(window, taken, number);
    return status;
}

void meet(Window& window) {
    MPI_Request request = MPI_REQUEST_NULL;
    PMPI_Ibarrier(window.comm, &request);
    p2p::wait_for_host(&request, MPI_STATUS_IGNORE);
}

void count_one_sided(std::uint64_t bytes) {
    operations.fetch_add(1, std::memory_order_relaxed);
    moved_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

std::span<const Counter> one_sided_counters() {
    static const std::array<Counter, 4> all{{
        {"one_sided_operations", "one-sided operations of this rank that the device executed", Unit::events,
         [] { return operations.load(std::memory_order_relaxed); }},
        {"one_sided_bytes", "bytes of them", Unit::bytes,
         [] { return moved_bytes.load(std::memory_order_relaxed); }},
        {"windows_on_device", "windows that have used the device, counted on their rank 0", Unit::events,
         windows_made},
        {"window_ways_changed", "changes of windows between the host's MPI and the device", Unit::events,
         ways_changed},
    }};
    return all;
}

bool print_one_sided_summary() {
    std::array<std::uint64_t, 6> mine{operations.load(), moved_bytes.load(), windows_made(),
                                      windows_left(),    ways_changed(),     run_again()};
    std::array<std::uint64_t, 6> all{};
    PMPI_Reduce(mine.data(), all.data(), static_cast<int>(mine.size()), MPI_UINT64_T, MPI_SUM, 0,
                runtime().service);
    runtime().offloaded |= all[0] > 0;
    if (runtime().rank == 0 && runtime().settings.summary_file != 0)
        add_to_summary_file("windows", {{"on_device", all[2]},
                                        {"on_host", all[3]},
                                        {"why_on_host", all[3] > 0 ? why_windows_left() : ""},
                                        {"operations", all[0]},
                                        {"bytes", all[1]},
                                        {"ways_changed", all[4]},
                                        {"run_again", all[5]}});
    if (runtime().rank != 0 || runtime().settings.verbose == 0 || all[2] + all[3] == 0) return false;
    const std::string host =
        all[3] > 0 ? fmt::format(", {} on the host: {}", all[3], why_windows_left()) : "";
    const std::string changed =
        all[4] > 0 ? fmt::format("; windows changed their way {} time{}", all[4], all[4] > 1 ? "s" : "") : "";
    const std::string again =
        all[5] > 0 ? fmt::format("; {} operations run again on the host's MPI after a loss", all[5]) : "";
    say(fmt::format("one-sided: {} operations ({}) by the device, {} of {} windows altogether there{}{}{}",
                    all[0], human_bytes(all[1]), all[2], all[2] + all[3], host, changed, again));
    return true;
}

void open_windows() {
    PMPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &record_keyval, nullptr);
    open_handles();
    open_shapes();
}

void close_windows() {
    outstanding.windows_ended.raise();
    close_ledgers();
    close_shapes();
    close_handles();
    PMPI_Win_free_keyval(&record_keyval);
}

}  // namespace offpath::mpi
