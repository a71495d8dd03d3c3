// Small operations on windows by the direct path: when one may go that way, and who waits for it.
//
// Order. A proxy carries out what comes by one path in order, and each before the next. What went through the
// own proxy before is behind, so a direct operation goes only where nothing of that is under way to its
// target which it must not overtake; and what goes through the own proxy waits for direct ones where the
// program has ordered it behind them, or where both are updates (start(), window_operations.cpp).
#include "base/clock.h"
#include "base/patience.h"
#include "client/caught.h"
#include "client/context.h"
#include "client/windows.h"

#include <poll.h>

#include <array>
#include <cstring>

using namespace offpath;
using namespace offpath::client;

namespace {

namespace direct = rma::direct;
using rma::OpKind;

static_assert(OFFPATH_DIRECT_BYTES == direct::most_result_bytes);
static_assert(OFFPATH_DIRECT_ELEMENTS == direct::most_elements);

// Direct ones, one after the other, that nobody waits for; the next go through the own proxy, which sends
// many together and costs this process less.
constexpr std::uint32_t most_in_a_row = 8;

// Between two flushes, each a message of its own at once; more are cheaper together: small ones this way,
// others by the own proxy.
constexpr std::uint32_t most_in_a_batch = 4;
// What they may bring along or ask for, so that the sockets hold it while the program computes.
constexpr std::uint64_t most_batch_bytes = OFFPATH_DIRECT_BYTES;

using Operation = DirectOperation;

DirectPaths::Path* path_for(offpath_window& window, const Operation& operation, bool waits) {
    offpath_context& context = *window.context;
    if (context.direct == nullptr) return nullptr;
    const offpath_window::Target& target = window.targets[operation.target];
    if (target.not_direct || loose_under_way(window, operation.target)) return nullptr;
    if (target.watched > 0 && window.ordered(operation.target)) return nullptr;
    if (target.watched_updates > 0 && is_update(operation.kind)) return nullptr;
    DirectPaths::Path* const path = context.direct->open_path(window.team->job_ranks[operation.target]);
    return path != nullptr && (waits || path->in_a_row < most_in_a_row) ? path : nullptr;
}

// Cuts what is larger than a message; its pieces may be seen one by one, as those of any put, or elements of
// an update. What somebody waits for is not cut.
void ask(offpath_window& window, DirectPaths::Path& path, const Operation& operation,
         DirectPaths::Outcome* outcome, bool with_others = false) {
    DirectPaths& paths = *window.context->direct;
    direct::Request request{};
    request.dest = operation.target;
    request.origin = window.team->rank;
    request.team = window.team->id;
    request.window = window.id;
    request.operation = static_cast<std::uint8_t>(operation.kind);
    request.type = operation.type;
    request.reduction = operation.reduction;
    request.element = static_cast<std::uint32_t>(operation.element);
    request.stride = operation.stride;
    std::uint64_t piece = operation.operands.empty() ? operation.bytes : direct::piece_bytes;
    const std::uint64_t whole = is_update(operation.kind)
                                    ? schedule::size_of(static_cast<schedule::DataType>(operation.type))
                                    : operation.element;
    if (whole > 0) piece -= piece % whole;
    const bool cut = piece < operation.bytes;
    if (cut) paths.hold(path);
    std::uint64_t at = 0;
    do {
        request.offset =
            operation.offset + (operation.element > 0 ? at / operation.element * operation.stride : at);
        request.bytes = static_cast<std::uint32_t>(std::min(piece, operation.bytes - at));
        auto operands = operation.operands;
        if (operation.kind != OpKind::compare_swap && !operands.empty())
            operands = operands.subspan(at, request.bytes);
        DirectPaths::Asker asker{outcome, nullptr, 0, &window};
        if (operation.result != nullptr) {
            asker.result = static_cast<std::byte*>(operation.result) + at;
            asker.result_bytes = request.bytes;
        }
        if (with_others) {
            paths.ask_with_others(path, request, operands, asker);
        } else {
            paths.ask(path, request, operands, asker);
        }
        at += piece;
    } while (at < operation.bytes);
    if (cut) paths.let_go(path);
}

offpath_status_t run(offpath_window_h window, const Operation& operation) {
    offpath_context& context = *window->context;
    DirectPaths::Outcome outcome;
    {
        auto guard = context.lock();
        DirectPaths::Path* const path = path_for(*window, operation, operation.result != nullptr);
        if (path == nullptr) return OFFPATH_ERR_UNAVAILABLE;
        ask(*window, *path, operation, operation.result != nullptr ? &outcome : nullptr);
        ++context.operations;
        ++context.direct_operations;
        context.bytes += operation.operands.size();
    }
    if (operation.result == nullptr) return OFFPATH_OK;
    context.wait_direct([&] { return outcome.over; });
    if (outcome.status != Status::unsupported) return to_c(outcome.status);
    auto guard = context.lock();
    window->targets[operation.target].not_direct = true;
    return OFFPATH_ERR_UNAVAILABLE;
}

// What takes more than that is better told as segments.
bool strided(Operation& operation, std::size_t element, std::size_t count, std::size_t stride) {
    if (element > direct::piece_bytes || count > direct::most_elements ||
        element * count > OFFPATH_DIRECT_BYTES || stride > schedule::max_slot_bytes / count)
        return false;
    operation.bytes = element * count;
    operation.element = element;
    operation.stride = stride;
    return true;
}

bool reaches(offpath_window_h window, std::uint32_t target) {
    return window != nullptr && target < window->team->size;
}

}  // namespace

bool offpath::client::start_directly(offpath_window& window, const DirectOperation& operation) {
    const offpath_window::Target& target = window.targets[operation.target];
    offpath_window::Batch& batch = window.batch;
    ++batch.now;
    const std::uint64_t moved = std::max<std::uint64_t>(operation.operands.size(), operation.bytes);
    const bool small = moved <= DirectPaths::most_bundled_bytes;
    const bool few = batch.before <= most_in_a_batch && batch.now <= most_in_a_batch &&
                     moved <= most_batch_bytes - batch.bytes;
    if (!target.mapped || (!few && !small)) return false;
    if (is_update(operation.kind) &&
        schedule::is_long_double(static_cast<schedule::DataType>(operation.type)))
        return false;
    DirectPaths::Path* const path = path_for(window, operation, small);
    if (path == nullptr || !window.context->direct->has_room(*path)) return false;
    // What is ordered is waited for at the other side, perhaps.
    const bool later =
        small && !window.ordered(operation.target) && (!few || path->in_a_row >= most_in_a_row);
    ask(window, *path, operation, nullptr, later);
    offpath_context& context = *window.context;
    ++context.operations;
    ++context.direct_operations;
    context.bytes += operation.operands.size();
    if (few) batch.bytes += moved;
    return true;
}

bool offpath_context::sleep_direct() {
    int fd = -1;
    {
        auto guard = lock();
        direct->look(SteadyClock().now_ns(), lost_after_ns());
        if (!direct->arm()) return false;
        fd = direct->event_fd();
    }
    // Another thread may take what this one waits for.
    pollfd entry{fd, POLLIN, 0};
    poll(&entry, 1, threads_ ? 1 : 100);
    return true;
}

void offpath::client::wait_for_direct(offpath_window& window, std::uint32_t target) {
    offpath_context& context = *window.context;
    if (context.direct == nullptr) return;
    const auto busy = [&] {
        return target == OFFPATH_ALL_TARGETS ? context.direct->busy()
                                             : context.direct->busy(window.team->job_ranks[target]);
    };
    {
        auto guard = context.lock();
        if (target == OFFPATH_ALL_TARGETS) {
            context.direct->waited();
        } else {
            context.direct->waited(window.team->job_ranks[target]);
        }
        if (!busy()) return;
    }
    context.wait_direct([&] { return !busy(); });
}

// Locks that follow one that had to wait go the way on which they queue.
constexpr std::uint32_t locks_queued = 16;

bool offpath::client::unlock_directly(offpath_window& window, std::uint32_t target) {
    DirectOperation operation;
    operation.kind = OpKind::unlock;
    operation.target = target;
    if (window.targets[target].watched > 0) return false;
    DirectPaths::Path* const path = path_for(window, operation, true);
    if (path == nullptr) return false;
    ask(window, *path, operation, nullptr);
    return true;
}

extern "C" {

offpath_status_t offpath_direct_lock(offpath_window_h window, uint32_t target, offpath_lock_t lock) try {
    if (!reaches(window, target) || (lock != OFFPATH_LOCK_SHARED && lock != OFFPATH_LOCK_EXCLUSIVE))
        return OFFPATH_ERR_INVALID;
    offpath_context& context = *window->context;
    Operation operation;
    operation.kind = lock == OFFPATH_LOCK_SHARED ? OpKind::lock_shared : OpKind::lock_exclusive;
    operation.target = target;
    DirectPaths::Outcome outcome;
    {
        auto guard = context.lock();
        offpath_window::Target& there = window->targets[target];
        if (there.queued_locks > 0) {
            --there.queued_locks;
            return OFFPATH_ERR_UNAVAILABLE;
        }
        DirectPaths::Path* const path = path_for(*window, operation, true);
        if (path == nullptr) return OFFPATH_ERR_UNAVAILABLE;
        ask(*window, *path, operation, &outcome);
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
    Operation operation;
    operation.target = target;
    operation.offset = offset;
    operation.bytes = bytes;
    operation.operands = {static_cast<const std::byte*>(origin), bytes};
    return run(window, operation);
} catch (...) {
    return caught("offpath_direct_put");
}

offpath_status_t offpath_direct_get(offpath_window_h window, void* result, size_t bytes, uint32_t target,
                                    uint64_t offset) try {
    if (!reaches(window, target) || result == nullptr) return OFFPATH_ERR_INVALID;
    if (bytes == 0 || bytes > OFFPATH_DIRECT_BYTES) return bytes == 0 ? OFFPATH_OK : OFFPATH_ERR_UNAVAILABLE;
    Operation operation;
    operation.kind = OpKind::get;
    operation.target = target;
    operation.offset = offset;
    operation.bytes = bytes;
    operation.result = result;
    return run(window, operation);
} catch (...) {
    return caught("offpath_direct_get");
}

offpath_status_t offpath_direct_put_strided(offpath_window_h window, const void* origin, size_t element,
                                            size_t count, size_t stride, uint32_t target,
                                            uint64_t offset) try {
    if (!reaches(window, target) || origin == nullptr || element == 0 || stride < element)
        return OFFPATH_ERR_INVALID;
    if (count == 0) return OFFPATH_OK;
    Operation operation;
    if (!strided(operation, element, count, stride)) return OFFPATH_ERR_UNAVAILABLE;
    operation.target = target;
    operation.offset = offset;
    operation.operands = {static_cast<const std::byte*>(origin), operation.bytes};
    return run(window, operation);
} catch (...) {
    return caught("offpath_direct_put_strided");
}

offpath_status_t offpath_direct_get_strided(offpath_window_h window, void* result, size_t element,
                                            size_t count, size_t stride, uint32_t target,
                                            uint64_t offset) try {
    if (!reaches(window, target) || result == nullptr || element == 0 || stride < element)
        return OFFPATH_ERR_INVALID;
    if (count == 0) return OFFPATH_OK;
    Operation operation;
    if (!strided(operation, element, count, stride)) return OFFPATH_ERR_UNAVAILABLE;
    operation.kind = OpKind::get;
    operation.target = target;
    operation.offset = offset;
    operation.result = result;
    return run(window, operation);
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
    // Its representation may differ where the target's device is of another architecture.
    if (schedule::is_long_double(static_cast<schedule::DataType>(type))) return OFFPATH_ERR_UNAVAILABLE;
    Operation operation;
    operation.kind = result != nullptr ? OpKind::get_accumulate : OpKind::accumulate;
    operation.type = static_cast<std::uint8_t>(type);
    operation.reduction = static_cast<std::uint8_t>(reduction);
    operation.target = target;
    operation.offset = offset;
    operation.bytes = bytes;
    operation.operands = {static_cast<const std::byte*>(origin),
                          operand_bytes(operation.kind, operation.reduction, bytes)};
    operation.result = result;
    return run(window, operation);
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
    std::array<std::byte, 64> both{};
    std::memcpy(both.data(), origin, bytes);
    std::memcpy(both.data() + bytes, compare, bytes);
    Operation operation;
    operation.kind = OpKind::compare_swap;
    operation.type = static_cast<std::uint8_t>(type);
    operation.reduction = static_cast<std::uint8_t>(OFFPATH_REPLACE);
    operation.target = target;
    operation.offset = offset;
    operation.bytes = bytes;
    operation.operands = {both.data(), 2 * bytes};
    operation.result = result;
    return run(window, operation);
} catch (...) {
    return caught("offpath_direct_compare_swap");
}
}
