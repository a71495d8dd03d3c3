// The commands for windows (rma/access.h): kinds from 40 on. commands.h includes this header and states
// the conventions of all commands. Pure.
#pragma once

#include "base/field_lists.h"
#include "control/command_fields.h"
#include "rma/access.h"

namespace offpath::control {

// The slot of operations without a completion of their own. A flush reports them.
constexpr std::uint32_t no_completion = UINT32_MAX;

// Exposes `range` to the ranks of the team, at offset 0; a range of no bytes exposes nothing.
struct CreateWindow {
    static constexpr std::uint16_t kind = 40;
    std::uint64_t team = 0, window = 0;
    std::uint32_t completion = 0, dynamic = 0;
    BufferRange range;
    static void fields(auto& self, auto&& each) {
        each(self.team, self.window, self.completion, self.dynamic, self.range);
    }
    const char* problem() const { return dynamic > 1 ? "a window of an unknown kind" : nullptr; }
};
struct DestroyWindow {
    static constexpr std::uint16_t kind = 41;
    std::uint64_t team = 0, window = 0;
    std::uint32_t completion = 0;
    static void fields(auto& self, auto&& each) { each(self.team, self.window, self.completion); }
};
// Exposes `range` at offset `begin` of a dynamic window.
struct AttachWindow {
    static constexpr std::uint16_t kind = 42;
    std::uint64_t team = 0, window = 0, begin = 0;
    std::uint32_t completion = 0;
    BufferRange range;
    static void fields(auto& self, auto&& each) {
        each(self.team, self.window, self.begin, self.completion, self.range);
    }
};
struct DetachWindow {
    static constexpr std::uint16_t kind = 43;
    std::uint64_t team = 0, window = 0, begin = 0;
    std::uint32_t completion = 0;
    static void fields(auto& self, auto&& each) { each(self.team, self.window, self.begin, self.completion); }
};
// `inlined`: the operands, instead of `origin`. Complete when first + part.size() == segments. Without
// segments the target is one piece.
struct WindowOperation {
    static constexpr std::uint16_t kind = 44;
    std::uint64_t team = 0, window = 0;
    rma::Access access;
    std::uint32_t completion = no_completion;
    std::uint32_t segments = 0, first = 0;
    BufferRange origin, result;
    Packed<rma::Segment> part;
    std::span<const std::byte> inlined;
    static void fields(auto& self, auto&& each) {
        each(self.team, self.window, self.access.offset, self.access.bytes, self.completion,
             self.access.target, self.access.kind, self.access.type, self.access.reduction,
             self.access.ordered, self.access.mark, self.segments, self.first, self.origin, self.result);
        each.list(self.part, max_record_bytes);
        each.list(self.inlined, rma::inline_bytes);
    }
    const char* problem() const {
        if (!rma::is_kind(access.kind) || access.ordered > 1) return "an unknown operation on a window";
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
    static void fields(auto& self, auto&& each) {
        each(self.team, self.window, self.completion, self.target);
    }
};

// Makes the window keep its ledger (rma/ledger.h) in `range`.
struct KeepLedger {
    static constexpr std::uint16_t kind = 46;
    std::uint64_t team = 0, window = 0;
    std::uint32_t completion = 0;
    BufferRange range;
    static void fields(auto& self, auto&& each) { each(self.team, self.window, self.completion, self.range); }
};

static_assert(sizeof(BufferRange) == 24 && sizeof(rma::Segment) == 16);

}  // namespace offpath::control
