// The C API's puts, gets and updates: each call checks its arguments and posts one command.
#include "base/log.h"
#include "client/caught.h"
#include "client/context.h"
#include "client/windows.h"

using namespace offpath;
using namespace offpath::client;

namespace {

using rma::OpKind;

// The most operations without a request that may be outstanding before everything is flushed. The proxy keeps
// a record of each.
constexpr std::uint32_t most_unwatched = 1 << 14;
static_assert(OFFPATH_INLINE_BYTES == rma::inline_bytes);

bool valid(const offpath_window& window, const WindowCall& call, const offpath_place_t& place) {
    if (call.target >= window.team->size || call.bytes > schedule::max_slot_bytes) return false;
    if (call.operands.size() != call.operand_bytes()) return false;
    if (call.result_bytes() > 0 && call.result == nullptr) return false;
    if (place.segment_count == 0) return true;
    return place.segments != nullptr && place.segment_count <= rma::max_segments;
}

// Waits until no operation without a request is outstanding in any window. The program's own flushes report
// what has failed there. Must not hold the lock, so windows may end meanwhile.
void flush_all(offpath_context& context) {
    struct Flush {
        offpath_window* window = nullptr;
        offpath_request* request = nullptr;
    };
    std::vector<Flush> flushes;
    {
        auto guard = context.lock();
        for (const auto& [window, owned] : context.windows) {
            Flush flush{window};
            if (window->unwatched > 0 &&
                post_flush(*window, OFFPATH_ALL_TARGETS, &flush.request) == Status::ok)
                flushes.push_back(flush);
        }
    }
    for (const Flush& flush : flushes) {
        const Status status = context.wait(*flush.request);
        auto guard = context.lock();
        context.requests.free(flush.request);
        if (!context.windows.contains(flush.window)) continue;
        if (flush.window->unreported == Status::ok) flush.window->unreported = status;
    }
}

Status post_parts(offpath_context& context, control::WindowOperation& command, const offpath_place_t& place) {
    constexpr std::size_t most = (control::max_part_bytes - rma::inline_bytes - 128) / sizeof(rma::Segment);
    static_assert(sizeof(offpath_segment_t) == sizeof(rma::Segment));
    const std::span<const std::byte> inlined = command.inlined;
    command.segments = place.segment_count;
    std::uint32_t first = 0;
    do {
        const std::uint32_t count = std::min<std::uint32_t>(most, place.segment_count - first);
        command.first = first;
        if (count > 0)
            command.part = Packed<rma::Segment>(std::as_bytes(std::span(place.segments + first, count)));
        first += count;
        command.inlined = first == place.segment_count ? inlined : std::span<const std::byte>();
        if (Status status = context.post(command); status != Status::ok) return status;
    } while (first < place.segment_count);
    return Status::ok;
}

Status start(offpath_window& window, const WindowCall& call, const offpath_place_t& place,
             offpath_request_h* request) {
    offpath_context& context = *window.context;
    auto guard = context.lock();
    const std::uint64_t fence_calls = window.fence_calls;
    if (request == nullptr && place.segment_count == 0 && call.bytes > 0 && context.direct != nullptr &&
        start_directly(window, call))
        return Status::ok;
    if (context.direct != nullptr && (window.ordered(call.target) || is_update(call.kind))) {
        guard = {};
        wait_for_direct(window, call.target);
        guard = context.lock();
    }
    if (request == nullptr && context.unwatched >= most_unwatched) {
        guard = {};
        flush_all(context);
        guard = context.lock();
    }
    offpath_request* made = nullptr;
    if (call.bytes == 0) {
        if (request != nullptr) *request = context.requests.finished(&context, Status::ok);
        return Status::ok;
    }
    if (request != nullptr) {
        if (Status status = context.new_request(&made); status != Status::ok) return status;
    }
    const std::uint64_t operands = call.operands.size(), result = call.result_bytes();
    const bool inlined = operands <= rma::inline_bytes;
    control::WindowOperation command;
    command.team = window.team->id;
    command.window = window.id;
    command.access = call;
    command.access.ordered = window.ordered(call.target) ? 1 : 0;
    command.access.mark = std::exchange(window.mark, 0);
    command.completion = made != nullptr ? made->slot : control::no_completion;
    if (inlined) {
        command.inlined = call.operands;
    } else {
        command.origin = context.resolve(call.operands.data(), operands);
    }
    if (result > 0) command.result = context.resolve(call.result, result);
    if (made != nullptr) {
        const auto begin = reinterpret_cast<std::uintptr_t>(call.operands.data());
        const auto into = reinterpret_cast<std::uintptr_t>(call.result);
        made->used.assign({{begin, begin + operands}, {into, into + result}});
    }
    if (Status status = post_parts(context, command, place); status != Status::ok) {
        if (made != nullptr) context.requests.undo(made);
        return status;
    }
    // A fence that another thread has made during a wait above is for what comes after it.
    if (window.fence_calls == fence_calls) window.fence_is_out(call.target);
    context.ring();
    ++context.operations;
    context.bytes += operands;
    if (made == nullptr) {
        ++window.unwatched;
        ++context.unwatched;
        window.targets[call.target].loose = ++window.loose;
    } else {
        made->window = &window;
        made->target = call.target;
        made->updates = is_update(call.kind);
        window.watch(call.target);
        if (made->updates) ++window.targets[call.target].watched_updates;
        *request = made;
    }
    return Status::ok;
}

offpath_status_t run(offpath_window_h window, const WindowCall& call, const offpath_place_t& place,
                     offpath_request_h* request) {
    return valid(*window, call, place) ? to_c(start(*window, call, place, request)) : OFFPATH_ERR_INVALID;
}

// Returns the size of an element, or 0.
std::size_t element_bytes(offpath_type_t type) {
    return schedule::size_of(static_cast<schedule::DataType>(type));
}

rma::Access access_to(const offpath_place_t& place, OpKind kind, std::uint64_t bytes) {
    return {place.offset, bytes, place.target, kind};
}
rma::Access update_of(const offpath_place_t& place, OpKind kind, std::size_t count, offpath_type_t type,
                      offpath_reduction_t reduction) {
    rma::Access access = access_to(place, kind, count * element_bytes(type));
    access.type = static_cast<std::uint8_t>(type);
    access.reduction = static_cast<std::uint8_t>(reduction);
    return access;
}

bool computable(offpath_window_h window, const offpath_place_t* place, std::size_t count, offpath_type_t type,
                offpath_reduction_t reduction) {
    if (window == nullptr || place == nullptr || element_bytes(type) == 0 || count > schedule::max_slot_bytes)
        return false;
    const auto data_type = static_cast<schedule::DataType>(type);
    if (reduction == OFFPATH_REPLACE || reduction == OFFPATH_NO_OP) return true;
    if (!schedule::defined(data_type, static_cast<schedule::Reduction>(reduction))) return false;
    return !schedule::is_long_double(data_type) ||
           offpath_reduction_supported(window->context, type, reduction) == OFFPATH_OK;
}

}  // namespace

extern "C" {

offpath_status_t offpath_put(offpath_window_h window, const void* origin, size_t bytes,
                             const offpath_place_t* place, offpath_request_h* request) try {
    if (window == nullptr || place == nullptr) return OFFPATH_ERR_INVALID;
    return run(window, WindowCall(access_to(*place, OpKind::put, bytes), origin), *place, request);
} catch (...) {
    return caught("offpath_put");
}

offpath_status_t offpath_get(offpath_window_h window, void* result, size_t bytes,
                             const offpath_place_t* place, offpath_request_h* request) try {
    if (window == nullptr || place == nullptr) return OFFPATH_ERR_INVALID;
    return run(window, WindowCall(access_to(*place, OpKind::get, bytes), nullptr, result), *place, request);
} catch (...) {
    return caught("offpath_get");
}

offpath_status_t offpath_accumulate(offpath_window_h window, const void* origin, size_t count,
                                    offpath_type_t type, offpath_reduction_t reduction,
                                    const offpath_place_t* place, offpath_request_h* request) try {
    if (!computable(window, place, count, type, reduction)) return OFFPATH_ERR_INVALID;
    return run(window, WindowCall(update_of(*place, OpKind::accumulate, count, type, reduction), origin),
               *place, request);
} catch (...) {
    return caught("offpath_accumulate");
}

offpath_status_t offpath_get_accumulate(offpath_window_h window, const void* origin, void* result,
                                        size_t count, offpath_type_t type, offpath_reduction_t reduction,
                                        const offpath_place_t* place, offpath_request_h* request) try {
    if (!computable(window, place, count, type, reduction)) return OFFPATH_ERR_INVALID;
    const rma::Access access = update_of(*place, OpKind::get_accumulate, count, type, reduction);
    return run(window, WindowCall(access, origin, result), *place, request);
} catch (...) {
    return caught("offpath_get_accumulate");
}

offpath_status_t offpath_compare_swap(offpath_window_h window, const void* origin, const void* compare,
                                      void* result, offpath_type_t type, uint32_t target, uint64_t offset,
                                      offpath_request_h* request) try {
    const std::size_t bytes = element_bytes(type);
    if (window == nullptr || origin == nullptr || compare == nullptr || bytes == 0)
        return OFFPATH_ERR_INVALID;
    const SwapOperands operands(origin, compare, bytes);
    const offpath_place_t place{target, offset, nullptr, 0};
    const rma::Access access = update_of(place, OpKind::compare_swap, 1, type, OFFPATH_REPLACE);
    return run(window, WindowCall(access, operands.both.data(), result), place, request);
} catch (...) {
    return caught("offpath_compare_swap");
}
}
