// The operations on a window, and how many bytes each carries to the target's proxy and back. That proxy owns
// the target: it alone touches the window's memory on behalf of other ranks. Plain values, the same in the
// client, in commands and between engines.
#pragma once

#include <cstddef>
#include <cstdint>

namespace offpath::rma {

enum class OpKind : std::uint8_t {
    put = 1,         // target <- operand
    get,             // result <- target
    accumulate,      // target <- target (reduction) operand
    get_accumulate,  // result <- target, then as accumulate
    compare_swap,    // result <- target; if that is the second operand: target <- the first
    lock_shared,     // granting order: locks.h
    lock_exclusive,
    unlock,
};
constexpr bool is_kind(std::uint8_t value) {
    return value >= 1 && value <= static_cast<std::uint8_t>(OpKind::unlock);
}
constexpr bool is_lock(OpKind kind) {
    return kind >= OpKind::lock_shared;
}
// Whether the operation is an atomic update. Updates execute one after the other, and those of one origin in
// its order.
constexpr bool is_update(OpKind kind) {
    return kind >= OpKind::accumulate && kind <= OpKind::compare_swap;
}

// Reductions that only updates have, in addition to those of schedules.
constexpr std::uint8_t replace = 254;
constexpr std::uint8_t no_op = 255;

// Operand and result bytes for an operation on `bytes` bytes at the target.
constexpr std::uint64_t operand_bytes(OpKind kind, std::uint8_t reduction, std::uint64_t bytes) {
    switch (kind) {
        case OpKind::put:
        case OpKind::accumulate:
            return bytes;
        case OpKind::get_accumulate:
            return reduction == no_op ? 0 : bytes;
        case OpKind::compare_swap:
            return 2 * bytes;
        default:
            return 0;
    }
}
constexpr std::uint64_t result_bytes(OpKind kind, std::uint64_t bytes) {
    const bool fetches =
        kind == OpKind::get || kind == OpKind::get_accumulate || kind == OpKind::compare_swap;
    return fetches ? bytes : 0;
}

// A piece of a target: an offset in the window, or in a dynamic window an address at the target.
struct Segment {
    std::uint64_t offset = 0, bytes = 0;
    friend bool operator==(const Segment&, const Segment&) = default;
};

// Operands up to this size travel inside their command and inside their message.
constexpr std::uint64_t inline_bytes = 4 << 10;
// The most segments of one call, and of one message.
constexpr std::uint32_t max_segments = 1u << 16;
constexpr std::uint32_t message_segments = 256;
// The largest message for data that passes through the memory of the target's proxy. It is a multiple of
// every element size.
constexpr std::uint64_t part_bytes = 128 << 10;

}  // namespace offpath::rma
