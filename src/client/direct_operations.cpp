// Small operations on windows over the direct path: when an operation may take that path, and which calls
// wait for it.
//
// Order. A proxy executes the operations of one path in order, each before the next. Operations that went
// through this rank's own proxy may still be on their way to the target. So an operation takes the direct
// path only if none of those is outstanding that it must not overtake. In the other direction, an operation
// that goes through the own proxy waits for direct ones if the program ordered it behind them, or if both are
// updates (start(), window_operations.cpp).
#include "base/clock.h"
#include "base/patience.h"
#include "client/caught.h"
#include "client/context.h"
#include "client/windows.h"

#include <poll.h>

using namespace offpath;
using namespace offpath::client;

namespace {

namespace direct = rma::direct;
using rma::OpKind;

static_assert(OFFPATH_DIRECT_BYTES == direct::most_result_bytes);
static_assert(OFFPATH_DIRECT_ELEMENTS == direct::most_elements);

using ways::most_in_a_row;
static_assert(OFFPATH_DIRECT_BYTES == ways::most_batch_bytes);

DirectPaths::Path* path_for(offpath_window& window, const WindowCall& call, bool waits) {
    offpath_context& context = *window.context;
    if (context.direct == nullptr) return nullptr;
    const offpath_window::Target& target = window.targets[call.target];
    if (target.not_direct || loose_outstanding(window, call.target)) return nullptr;
    if (window.watched_before_fence(call.target)) return nullptr;
    if (target.watched_updates > 0 && is_update(call.kind)) return nullptr;
    DirectPaths::Path* const path = context.direct->open_path(window.team->job_ranks[call.target]);
    return path != nullptr && (waits || path->in_a_row < most_in_a_row) ? path : nullptr;
}

// Cuts an operation that is larger than a message. Its pieces may become visible one by one, like those of
// any put, or the elements of an update. An operation that a thread waits for is not cut.
void ask(offpath_window& window, DirectPaths::Path& path, const WindowCall& call,
         DirectPaths::Outcome* outcome, bool with_others = false) {
    DirectPaths& paths = *window.context->direct;
    direct::Request request{};
    request.describe(call);
    request.origin = window.team->rank;
    request.team = window.team->id;
    request.window = window.id;
    const std::uint32_t mark = std::exchange(window.mark, 0);
    std::uint64_t piece = call.operands.empty() ? call.bytes : direct::piece_bytes;
    const std::uint64_t whole =
        is_update(call.kind) ? schedule::size_of(static_cast<schedule::DataType>(call.type)) : call.element;
    if (whole > 0) piece -= piece % whole;
    const bool cut = piece < call.bytes;
    if (cut) paths.hold(path);
    std::uint64_t at = 0;
    do {
        request.offset = call.offset + (call.element > 0 ? at / call.element * call.stride : at);
        request.bytes = static_cast<std::uint32_t>(std::min(piece, call.bytes - at));
        // The last piece says that all of it is done.
        request.mark = at + piece >= call.bytes ? mark : 0;
        auto operands = call.operands;
        if (call.kind != OpKind::compare_swap && !operands.empty())
            operands = operands.subspan(at, request.bytes);
        DirectPaths::Asker asker{outcome, nullptr, 0, &window};
        if (call.result != nullptr) {
            asker.result = static_cast<std::byte*>(call.result) + at;
            asker.result_bytes = request.bytes;
        }
        if (with_others) {
            paths.ask_with_others(path, request, operands, asker);
        } else {
            paths.ask(path, request, operands, asker);
        }
        at += piece;
    } while (at < call.bytes);
    if (cut) paths.let_go(path);
}

offpath_status_t run(offpath_window_h window, const WindowCall& call) {
    offpath_context& context = *window->context;
    DirectPaths::Outcome outcome;
    {
        auto guard = context.lock();
        DirectPaths::Path* const path = path_for(*window, call, call.result != nullptr);
        if (path == nullptr) return OFFPATH_ERR_UNAVAILABLE;
        ask(*window, *path, call, call.result != nullptr ? &outcome : nullptr);
        ++context.operations;
        ++context.direct_operations;
        context.bytes += call.operands.size();
    }
    if (call.result == nullptr) return OFFPATH_OK;
    context.wait_direct([&] { return outcome.over; });
    if (outcome.status != Status::unsupported) return to_c(outcome.status);
    auto guard = context.lock();
    window->targets[call.target].not_direct = true;
    return OFFPATH_ERR_UNAVAILABLE;
}

// Segments describe a larger strided operation better.
bool small_enough(std::size_t element, std::size_t count, std::size_t stride) {
    return element <= direct::piece_bytes && count <= direct::most_elements &&
           element * count <= OFFPATH_DIRECT_BYTES && stride <= schedule::max_slot_bytes / count;
}

bool reaches(offpath_window_h window, std::uint32_t target) {
    return window != nullptr && target < window->team->size;
}

}  // namespace

bool offpath::client::start_directly(offpath_window& window, const WindowCall& call) {
    const offpath_window::Target& target = window.targets[call.target];
    ways::Batch& batch = window.batch;
    ++batch.now;
    const std::uint64_t moved = std::max<std::uint64_t>(call.operands.size(), call.bytes);
    const bool small = moved <= ways::most_bundled_bytes;
    const bool few = batch.is_few(moved);
    if (!target.mapped || (!few && !small)) return false;
    if (is_update(call.kind) && schedule::is_long_double(static_cast<schedule::DataType>(call.type)))
        return false;
    DirectPaths::Path* const path = path_for(window, call, small);
    if (path == nullptr || !window.context->direct->has_room(*path)) return false;
    // The target's side may hold an ordered operation back until the earlier ones are done.
    const bool later = small && !window.ordered(call.target) && (!few || path->in_a_row >= most_in_a_row);
    ask(window, *path, call, nullptr, later);
    offpath_context& context = *window.context;
    ++context.operations;
    ++context.direct_operations;
    context.bytes += call.operands.size();
    if (few) batch.bytes += moved;
    return true;
}

bool offpath_context::sleep_direct() {
    int fd = -1;
    {
        auto guard = lock();
        direct->look(now_ns(), lost_after_ns());
        if (!direct->arm()) return false;
        fd = direct->event_fd();
    }
    // Another thread may take the answer that this thread waits for.
    pollfd entry{fd, POLLIN, 0};
    poll(&entry, 1, threads_ ? 1 : 100);
    return true;
}

void offpath::client::wait_for_direct(offpath_window& window, std::uint32_t target) {
    offpath_context& context = *window.context;
    if (context.direct == nullptr) return;
    std::uint64_t end = 0;
    const auto busy = [&] {
        return target == OFFPATH_ALL_TARGETS ? context.direct->busy(end)
                                             : context.direct->busy(window.team->job_ranks[target], end);
    };
    {
        auto guard = context.lock();
        if (target == OFFPATH_ALL_TARGETS) {
            context.direct->waited();
        } else {
            context.direct->waited(window.team->job_ranks[target]);
        }
        end = context.direct->next_order();
        if (!busy()) return;
    }
    context.wait_direct([&] { return !busy(); });
}

// After a lock that had to wait, the next locks go through the own proxy, where they queue.
constexpr std::uint32_t locks_queued = 16;

bool offpath::client::unlock_directly(offpath_window& window, std::uint32_t target) {
    const WindowCall call({0, 0, target, OpKind::unlock});
    if (window.targets[target].watched > 0) return false;
    DirectPaths::Path* const path = path_for(window, call, true);
    if (path == nullptr) return false;
    ask(window, *path, call, nullptr);
    return true;
}

extern "C" {

offpath_status_t offpath_direct_lock(offpath_window_h window, uint32_t target, offpath_lock_t lock) try {
    if (!reaches(window, target) || (lock != OFFPATH_LOCK_SHARED && lock != OFFPATH_LOCK_EXCLUSIVE))
        return OFFPATH_ERR_INVALID;
    offpath_context& context = *window->context;
    const WindowCall call({0, 0, target, lock_kind(lock)});
    DirectPaths::Outcome outcome;
    {
        auto guard = context.lock();
        offpath_window::Target& there = window->targets[target];
        if (there.queued_locks > 0) {
            --there.queued_locks;
            return OFFPATH_ERR_UNAVAILABLE;
        }
        DirectPaths::Path* const path = path_for(*window, call, true);
        if (path == nullptr) return OFFPATH_ERR_UNAVAILABLE;
        ask(*window, *path, call, &outcome);
    }
    context.wait_direct([&] { return outcome.over; });
    if (outcome.status != Status::retry) return to_c(outcome.status);
    auto guard = context.lock();
    window->targets[target].queued_locks = locks_queued;
    return OFFPATH_ERR_UNAVAILABLE;
} catch (...) {
    return caught("offpath_direct_lock");
}

offpath_status_t offpath_direct_put(offpath_window_h window, const void* origin, size_t bytes,
                                    uint32_t target, uint64_t offset) try {
    if (!reaches(window, target) || origin == nullptr) return OFFPATH_ERR_INVALID;
    if (bytes == 0 || bytes > OFFPATH_DIRECT_BYTES) return bytes == 0 ? OFFPATH_OK : OFFPATH_ERR_UNAVAILABLE;
    return run(window, WindowCall({offset, bytes, target}, origin));
} catch (...) {
    return caught("offpath_direct_put");
}

offpath_status_t offpath_direct_get(offpath_window_h window, void* result, size_t bytes, uint32_t target,
                                    uint64_t offset) try {
    if (!reaches(window, target) || result == nullptr) return OFFPATH_ERR_INVALID;
    if (bytes == 0 || bytes > OFFPATH_DIRECT_BYTES) return bytes == 0 ? OFFPATH_OK : OFFPATH_ERR_UNAVAILABLE;
    return run(window, WindowCall({offset, bytes, target, OpKind::get}, nullptr, result));
} catch (...) {
    return caught("offpath_direct_get");
}

offpath_status_t offpath_direct_put_strided(offpath_window_h window, const void* origin, size_t element,
                                            size_t count, size_t stride, uint32_t target,
                                            uint64_t offset) try {
    if (!reaches(window, target) || origin == nullptr || element == 0 || stride < element)
        return OFFPATH_ERR_INVALID;
    if (count == 0) return OFFPATH_OK;
    if (!small_enough(element, count, stride)) return OFFPATH_ERR_UNAVAILABLE;
    WindowCall call({offset, element * count, target}, origin);
    call.element = element;
    call.stride = stride;
    return run(window, call);
} catch (...) {
    return caught("offpath_direct_put_strided");
}

offpath_status_t offpath_direct_get_strided(offpath_window_h window, void* result, size_t element,
                                            size_t count, size_t stride, uint32_t target,
                                            uint64_t offset) try {
    if (!reaches(window, target) || result == nullptr || element == 0 || stride < element)
        return OFFPATH_ERR_INVALID;
    if (count == 0) return OFFPATH_OK;
    if (!small_enough(element, count, stride)) return OFFPATH_ERR_UNAVAILABLE;
    WindowCall call({offset, element * count, target, OpKind::get}, nullptr, result);
    call.element = element;
    call.stride = stride;
    return run(window, call);
} catch (...) {
    return caught("offpath_direct_get_strided");
}

offpath_status_t offpath_direct_update(offpath_window_h window, offpath_reduction_t reduction,
                                       const void* origin, void* result, offpath_type_t type, uint32_t target,
                                       uint64_t offset) try {
    const std::size_t bytes = schedule::size_of(static_cast<schedule::DataType>(type));
    const bool plain = reduction == OFFPATH_REPLACE || reduction == OFFPATH_NO_OP;
    if (!reaches(window, target) || bytes == 0 || (origin == nullptr && reduction != OFFPATH_NO_OP))
        return OFFPATH_ERR_INVALID;
    if (!plain && !schedule::defined(static_cast<schedule::DataType>(type),
                                     static_cast<schedule::Reduction>(reduction)))
        return OFFPATH_ERR_INVALID;
    // The target's device may have another architecture, and with it another representation of long double.
    if (schedule::is_long_double(static_cast<schedule::DataType>(type))) return OFFPATH_ERR_UNAVAILABLE;
    const OpKind kind = result != nullptr ? OpKind::get_accumulate : OpKind::accumulate;
    return run(window, WindowCall({offset, bytes, target, kind, static_cast<std::uint8_t>(type),
                                   static_cast<std::uint8_t>(reduction)},
                                  origin, result));
} catch (...) {
    return caught("offpath_direct_update");
}

offpath_status_t offpath_direct_compare_swap(offpath_window_h window, const void* origin, const void* compare,
                                             void* result, offpath_type_t type, uint32_t target,
                                             uint64_t offset) try {
    const std::size_t bytes = schedule::size_of(static_cast<schedule::DataType>(type));
    if (!reaches(window, target) || origin == nullptr || compare == nullptr || result == nullptr ||
        bytes == 0)
        return OFFPATH_ERR_INVALID;
    const SwapOperands operands(origin, compare, bytes);
    return run(window, WindowCall({offset, bytes, target, OpKind::compare_swap,
                                   static_cast<std::uint8_t>(type), rma::replace},
                                  operands.both.data(), result));
} catch (...) {
    return caught("offpath_direct_compare_swap");
}
}
