// The operations on a window, and what each does at its target. The target's proxy owns the target: it alone
// touches the window's memory on behalf of other ranks. Plain values, the same in the client, in commands and
// between engines.
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
// Whether a value that came from elsewhere is a kind.
constexpr bool is_kind(OpKind value) {
    return value >= OpKind::put && value <= OpKind::unlock;
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

// What an operation does, and to which bytes of its target. The client builds it once for each call. The
// command, the engines at both ends and the messages between them carry it, and the owner checks and executes
// it.
struct Access {
    std::uint64_t offset = 0, bytes = 0;  // at the target; an operation on segments does not use the offset
    std::uint32_t target = 0;             // rank in the team
    OpKind kind = OpKind::put;
    std::uint8_t type = 0;       // of updates: schedule::DataType
    std::uint8_t reduction = 0;  // of updates: schedule::Reduction, replace or no_op
    std::uint8_t ordered = 0;    // 1: it and later operations start after all earlier ones on this target
    std::uint32_t mark = 0;      // names it in the marks of the target (marks.h); 0: it has none

    std::uint64_t operand_bytes() const { return rma::operand_bytes(kind, reduction, bytes); }
    std::uint64_t result_bytes() const { return rma::result_bytes(kind, bytes); }
    friend bool operator==(const Access&, const Access&) = default;
};

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
