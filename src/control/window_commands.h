// The commands for windows (rma/operation.h): kinds from 40 on. commands.h includes this header and states
// the conventions of all commands. Pure.
#pragma once

#include "control/record_fields.h"
#include "rma/operation.h"

namespace offpath::control {

// For operations without a completion of their own; a flush reports them.
constexpr std::uint32_t no_completion = UINT32_MAX;

// Exposes `range` to the ranks of the team, at offset 0; a range of no bytes exposes nothing.
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
// For dynamic windows: exposes `range` at offset `begin`.
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
// `inlined`: the operands, instead of `origin`. Complete when first + part.size() == segments. Without
// segments the target is `bytes` at `offset`.
struct WindowOperation {
    static constexpr std::uint16_t kind = 44;
    std::uint64_t team = 0, window = 0, offset = 0, bytes = 0;
    std::uint32_t completion = no_completion, target = 0;
    std::uint8_t operation = 0, type = 0, reduction = 0;
    std::uint8_t ordered = 0;  // 1: it and later operations start after all earlier ones on this target
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
// `target` UINT32_MAX: all targets.
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
