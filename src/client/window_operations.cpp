// Puts, gets and updates of the C API: check, and one command each.
#include "base/log.h"
#include "client/caught.h"
#include "client/context.h"
#include "client/windows.h"
#include "schedule/op.h"

#include <cstring>

using namespace offpath;
using namespace offpath::client;

namespace {

using rma::OpKind;

// What may be under way without a request before everything is flushed: the proxy keeps a record of each.
constexpr std::uint32_t most_unwatched = 1 << 14;
static_assert(OFFPATH_INLINE_BYTES == rma::inline_bytes);

struct Operation {
    OpKind kind = OpKind::put;
    const void* origin = nullptr;
    void* result = nullptr;
    std::size_t bytes = 0;  // at the target
    std::uint8_t type = 0, reduction = 0;
    std::span<const std::byte> inlined;  // instead of origin
};

bool valid(const offpath_window& window, const Operation& operation, const offpath_place_t& place) {
    if (place.target >= window.team->size || operation.bytes > schedule::max_slot_bytes) return false;
    const bool sends = operand_bytes(operation.kind, operation.reduction, operation.bytes) > 0;
    if (sends && operation.inlined.empty() && operation.origin == nullptr) return false;
    if (result_bytes(operation.kind, operation.bytes) > 0 && operation.result == nullptr) return false;
    if (place.segment_count == 0) return true;
    return place.segments != nullptr && place.segment_count <= rma::max_segments;
}

// Waits until nothing without a request is under way in any window. What has gone wrong there is for the
// program's own flushes. Not under the lock, so windows may end meanwhile.
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
            command.part =
                control::Packed<rma::Segment>(std::as_bytes(std::span(place.segments + first, count)));
        first += count;
        command.inlined = first == place.segment_count ? inlined : std::span<const std::byte>();
        if (Status status = context.post(command); status != Status::ok) return status;
    } while (first < place.segment_count);
    return Status::ok;
}

Status start(offpath_window& window, const Operation& operation, const offpath_place_t& place,
             offpath_request_h* request) {
    offpath_context& context = *window.context;
    const std::uint64_t operands = operand_bytes(operation.kind, operation.reduction, operation.bytes);
    const std::uint64_t result = result_bytes(operation.kind, operation.bytes);
    auto guard = context.lock();
    if (request == nullptr && place.segment_count == 0 && operation.bytes > 0 && context.direct != nullptr) {
        DirectOperation direct;
        direct.kind = operation.kind;
        direct.type = operation.type;
        direct.reduction = operation.reduction;
        direct.target = place.target;
        direct.offset = place.offset;
        direct.bytes = operation.bytes;
        direct.operands = operation.inlined;
        if (direct.operands.empty())
            direct.operands = {static_cast<const std::byte*>(operation.origin), operands};
        if (result > 0) direct.result = operation.result;
        if (start_directly(window, direct)) return Status::ok;
    }
    if (context.direct != nullptr && (window.ordered(place.target) || is_update(operation.kind))) {
        guard = {};
        wait_for_direct(window, place.target);
        guard = context.lock();
    }
    if (request == nullptr && context.unwatched >= most_unwatched) {
        guard = {};
        flush_all(context);
        guard = context.lock();
    }
    offpath_request* made = nullptr;
    if (operation.bytes == 0) {
        if (request != nullptr) *request = context.requests.finished(&context, Status::ok);
        return Status::ok;
    }
    if (request != nullptr) {
        if (Status status = context.new_request(&made); status != Status::ok) return status;
    }
    control::WindowOperation command;
    command.team = window.team->id;
    command.window = window.id;
    command.offset = place.offset;
    command.bytes = operation.bytes;
    command.completion = made != nullptr ? made->slot : control::no_completion;
    command.target = place.target;
    command.operation = static_cast<std::uint8_t>(operation.kind);
    command.type = operation.type;
    command.reduction = operation.reduction;
    command.ordered = window.ordered(place.target) ? 1 : 0;
    if (!operation.inlined.empty()) {
        command.inlined = operation.inlined;
    } else if (operands > 0 && operands <= rma::inline_bytes) {
        command.inlined = {static_cast<const std::byte*>(operation.origin), operands};
    } else if (operands > 0) {
        command.origin = context.resolve(operation.origin, operands);
    }
    if (result > 0) command.result = context.resolve(operation.result, result);
    if (made != nullptr) {
        const auto begin = reinterpret_cast<std::uintptr_t>(operation.origin);
        const auto into = reinterpret_cast<std::uintptr_t>(operation.result);
        made->used.assign({{begin, begin + operands}, {into, into + result}});
    }
    if (Status status = post_parts(context, command, place); status != Status::ok) {
        if (made != nullptr) context.requests.undo(made);
        return status;
    }
    window.fence_is_out(place.target);
    context.ring();
    ++context.operations;
    context.bytes += operands;
    if (made == nullptr) {
        ++window.unwatched;
        ++context.unwatched;
        window.targets[place.target].loose = ++window.loose;
    } else {
        made->window = &window;
        made->target = place.target;
        made->updates = is_update(operation.kind);
        ++window.watched;
        ++window.targets[place.target].watched;
        if (made->updates) ++window.targets[place.target].watched_updates;
        *request = made;
    }
    return Status::ok;
}

offpath_status_t run(offpath_window_h window, const Operation& operation, const offpath_place_t* place,
                     offpath_request_h* request) {
    if (window == nullptr || place == nullptr || !valid(*window, operation, *place))
        return OFFPATH_ERR_INVALID;
    return to_c(start(*window, operation, *place, request));
}

// The size of an element, or 0.
std::size_t element_bytes(offpath_type_t type) {
    return schedule::size_of(static_cast<schedule::DataType>(type));
}

Operation update(OpKind kind, const void* origin, void* result, std::size_t count, offpath_type_t type,
                 offpath_reduction_t reduction) {
    Operation operation;
    operation.kind = kind;
    operation.origin = origin;
    operation.result = result;
    operation.bytes = count * element_bytes(type);
    operation.type = static_cast<std::uint8_t>(type);
    operation.reduction = static_cast<std::uint8_t>(reduction);
    return operation;
}

bool computable(offpath_window_h window, std::size_t count, offpath_type_t type,
                offpath_reduction_t reduction) {
    if (window == nullptr || element_bytes(type) == 0 || count > schedule::max_slot_bytes) return false;
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
    Operation operation;
    operation.origin = origin;
    operation.bytes = bytes;
    return run(window, operation, place, request);
} catch (...) {
    return caught("offpath_put");
}

offpath_status_t offpath_get(offpath_window_h window, void* result, size_t bytes,
                             const offpath_place_t* place, offpath_request_h* request) try {
    Operation operation;
    operation.kind = OpKind::get;
    operation.result = result;
    operation.bytes = bytes;
    return run(window, operation, place, request);
} catch (...) {
    return caught("offpath_get");
}

offpath_status_t offpath_accumulate(offpath_window_h window, const void* origin, size_t count,
                                    offpath_type_t type, offpath_reduction_t reduction,
                                    const offpath_place_t* place, offpath_request_h* request) try {
    if (!computable(window, count, type, reduction)) return OFFPATH_ERR_INVALID;
    return run(window, update(OpKind::accumulate, origin, nullptr, count, type, reduction), place, request);
} catch (...) {
    return caught("offpath_accumulate");
}

offpath_status_t offpath_get_accumulate(offpath_window_h window, const void* origin, void* result,
                                        size_t count, offpath_type_t type, offpath_reduction_t reduction,
                                        const offpath_place_t* place, offpath_request_h* request) try {
    if (!computable(window, count, type, reduction)) return OFFPATH_ERR_INVALID;
    return run(window, update(OpKind::get_accumulate, origin, result, count, type, reduction), place,
               request);
} catch (...) {
    return caught("offpath_get_accumulate");
}

offpath_status_t offpath_compare_swap(offpath_window_h window, const void* origin, const void* compare,
                                      void* result, offpath_type_t type, uint32_t target, uint64_t offset,
                                      offpath_request_h* request) try {
    const std::size_t bytes = element_bytes(type);
    if (window == nullptr || origin == nullptr || compare == nullptr || bytes == 0)
        return OFFPATH_ERR_INVALID;
    std::array<std::byte, 64> both{};
    std::memcpy(both.data(), origin, bytes);
    std::memcpy(both.data() + bytes, compare, bytes);
    Operation operation = update(OpKind::compare_swap, nullptr, result, 1, type, OFFPATH_REPLACE);
    operation.inlined = {both.data(), 2 * bytes};
    const offpath_place_t place{target, offset, nullptr, 0};
    return run(window, operation, &place, request);
} catch (...) {
    return caught("offpath_compare_swap");
}
}
