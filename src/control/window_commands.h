// The commands for windows (rma/operation.h), and their part of the records' format: kinds from 40 on.
// Included by commands.h, which says what holds for all commands. Pure.
#pragma once

#include "control/command_fields.h"
#include "rma/operation.h"

namespace offpath::control {

// Of an operation that nobody waits for by itself: a flush tells of it.
constexpr std::uint32_t no_completion = UINT32_MAX;

// Memory that the ranks of the team reach: `range` at offset 0, nothing if it has no bytes.
struct CreateWindow {
    static constexpr std::uint16_t kind = 40;
    std::uint64_t team = 0, window = 0;
    std::uint32_t completion = 0, dynamic = 0;
    BufferRange range;
};
struct DestroyWindow {
    static constexpr std::uint16_t kind = 41;
    std::uint64_t team = 0, window = 0;
    std::uint32_t completion = 0;
};
// Of a dynamic window: `range` is reached at `begin` and following.
struct AttachWindow {
    static constexpr std::uint16_t kind = 42;
    std::uint64_t team = 0, window = 0, begin = 0;
    std::uint32_t completion = 0;
    BufferRange range;
};
struct DetachWindow {
    static constexpr std::uint16_t kind = 43;
    std::uint64_t team = 0, window = 0, begin = 0;
    std::uint32_t completion = 0;
};
// `inlined`: the operands, instead of `origin`. Complete when first + part.size() == segments; 0 segments:
// `bytes` at `offset`.
struct WindowOperation {
    static constexpr std::uint16_t kind = 44;
    std::uint64_t team = 0, window = 0, offset = 0, bytes = 0;
    std::uint32_t completion = no_completion, target = 0;
    std::uint8_t operation = 0, type = 0, reduction = 0;
    std::uint8_t ordered = 0;  // 1: it, and what follows it, after all before it on this target
    std::uint32_t segments = 0, first = 0;
    BufferRange origin, result;
    Packed<rma::Segment> part;
    std::span<const std::byte> inlined;
};
// `target` UINT32_MAX: all.
struct FlushWindow {
    static constexpr std::uint16_t kind = 45;
    std::uint64_t team = 0, window = 0;
    std::uint32_t completion = 0, target = 0;
};

std::size_t body_bytes(const CreateWindow& command);
std::size_t body_bytes(const DestroyWindow& command);
std::size_t body_bytes(const AttachWindow& command);
std::size_t body_bytes(const DetachWindow& command);
std::size_t body_bytes(const WindowOperation& command);
std::size_t body_bytes(const FlushWindow& command);

void write_body(FieldWriter& out, const CreateWindow& command);
void write_body(FieldWriter& out, const DestroyWindow& command);
void write_body(FieldWriter& out, const AttachWindow& command);
void write_body(FieldWriter& out, const DetachWindow& command);
void write_body(FieldWriter& out, const WindowOperation& command);
void write_body(FieldWriter& out, const FlushWindow& command);

// null: fine; else what is wrong.
const char* read_body(FieldReader& in, CreateWindow& command);
const char* read_body(FieldReader& in, DestroyWindow& command);
const char* read_body(FieldReader& in, AttachWindow& command);
const char* read_body(FieldReader& in, DetachWindow& command);
const char* read_body(FieldReader& in, WindowOperation& command);
const char* read_body(FieldReader& in, FlushWindow& command);

}  // namespace offpath::control
