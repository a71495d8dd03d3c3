// The commands for windows (rma/operation.h), and their part of the records' format: kinds from 40 on.
// Included by commands.h, which says what holds for all commands. Pure.
#pragma once

#include "control/record_fields.h"
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

    template <typename Self, typename Each>
    static void fields(Self& self, Each&& each) {
        each(self.team);
        each(self.window);
        each(self.completion);
        each(self.dynamic);
        each(self.range);
    }
    const char* problem() const { return dynamic > 1 ? "a window of an unknown kind" : nullptr; }
};
struct DestroyWindow {
    static constexpr std::uint16_t kind = 41;
    std::uint64_t team = 0, window = 0;
    std::uint32_t completion = 0;

    template <typename Self, typename Each>
    static void fields(Self& self, Each&& each) {
        each(self.team);
        each(self.window);
        each(self.completion);
    }
};
// Of a dynamic window: `range` is reached at `begin` and following.
struct AttachWindow {
    static constexpr std::uint16_t kind = 42;
    std::uint64_t team = 0, window = 0, begin = 0;
    std::uint32_t completion = 0;
    BufferRange range;

    template <typename Self, typename Each>
    static void fields(Self& self, Each&& each) {
        each(self.team);
        each(self.window);
        each(self.begin);
        each(self.completion);
        each(self.range);
    }
};
struct DetachWindow {
    static constexpr std::uint16_t kind = 43;
    std::uint64_t team = 0, window = 0, begin = 0;
    std::uint32_t completion = 0;

    template <typename Self, typename Each>
    static void fields(Self& self, Each&& each) {
        each(self.team);
        each(self.window);
        each(self.begin);
        each(self.completion);
    }
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

    template <typename Self, typename Each>
    static void fields(Self& self, Each&& each) {
        each(self.team);
        each(self.window);
        each(self.offset);
        each(self.bytes);
        each(self.completion);
        each(self.target);
        each(self.operation);
        each(self.type);
        each(self.reduction);
        each(self.ordered);
        each(self.segments);
        each(self.first);
        each(self.origin);
        each(self.result);
        each(self.part, max_record_bytes);
        each(self.inlined, rma::inline_bytes);
    }
    const char* problem() const {
        if (!rma::is_kind(operation) || ordered > 1) return "an unknown operation on a window";
        const bool fits = segments <= rma::max_segments && part_fits(first, part.size(), segments) &&
                          (part.size() > 0 || segments == 0);
        return fits ? nullptr : "an operation on a window with a wrong list of segments";
    }
};
// `target` UINT32_MAX: all.
struct FlushWindow {
    static constexpr std::uint16_t kind = 45;
    std::uint64_t team = 0, window = 0;
    std::uint32_t completion = 0, target = 0;

    template <typename Self, typename Each>
    static void fields(Self& self, Each&& each) {
        each(self.team);
        each(self.window);
        each(self.completion);
        each(self.target);
    }
};

static_assert(sizeof(BufferRange) == 24 && sizeof(rma::Segment) == 16);

}  // namespace offpath::control
