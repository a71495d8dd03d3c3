#include "control/window_commands.h"

namespace offpath::control {

namespace {

constexpr std::size_t range_bytes = 24;
static_assert(sizeof(BufferRange) == range_bytes && sizeof(rma::Segment) == 16);

}  // namespace

std::size_t body_bytes(const CreateWindow&) {
    return 16 + 8 + range_bytes;
}
std::size_t body_bytes(const DestroyWindow&) {
    return 16 + 4;
}
std::size_t body_bytes(const AttachWindow&) {
    return 24 + 4 + range_bytes;
}
std::size_t body_bytes(const DetachWindow&) {
    return 24 + 4;
}
std::size_t body_bytes(const WindowOperation& c) {
    return 32 + 8 + 4 + 8 + 2 * range_bytes + 4 + c.part.bytes().size() + 4 + c.inlined.size();
}
std::size_t body_bytes(const FlushWindow&) {
    return 16 + 8;
}

void write_body(FieldWriter& out, const CreateWindow& c) {
    out.value(c.team);
    out.value(c.window);
    out.value(c.completion);
    out.value(c.dynamic);
    out.value(c.range);
}

void write_body(FieldWriter& out, const DestroyWindow& c) {
    out.value(c.team);
    out.value(c.window);
    out.value(c.completion);
}

void write_body(FieldWriter& out, const AttachWindow& c) {
    out.value(c.team);
    out.value(c.window);
    out.value(c.begin);
    out.value(c.completion);
    out.value(c.range);
}

void write_body(FieldWriter& out, const DetachWindow& c) {
    out.value(c.team);
    out.value(c.window);
    out.value(c.begin);
    out.value(c.completion);
}

void write_body(FieldWriter& out, const WindowOperation& c) {
    out.value(c.team);
    out.value(c.window);
    out.value(c.offset);
    out.value(c.bytes);
    out.value(c.completion);
    out.value(c.target);
    out.value(c.operation);
    out.value(c.type);
    out.value(c.reduction);
    out.value(c.ordered);
    out.value(c.segments);
    out.value(c.first);
    out.value(c.origin);
    out.value(c.result);
    out.blob(c.part.bytes());
    out.blob(c.inlined);
}

void write_body(FieldWriter& out, const FlushWindow& c) {
    out.value(c.team);
    out.value(c.window);
    out.value(c.completion);
    out.value(c.target);
}

const char* read_body(FieldReader& in, CreateWindow& c) {
    c.team = in.value<std::uint64_t>();
    c.window = in.value<std::uint64_t>();
    c.completion = in.value<std::uint32_t>();
    c.dynamic = in.value<std::uint32_t>();
    c.range = in.value<BufferRange>();
    return c.dynamic > 1 ? "a window of an unknown kind" : nullptr;
}

const char* read_body(FieldReader& in, DestroyWindow& c) {
    c.team = in.value<std::uint64_t>();
    c.window = in.value<std::uint64_t>();
    c.completion = in.value<std::uint32_t>();
    return nullptr;
}

const char* read_body(FieldReader& in, AttachWindow& c) {
    c.team = in.value<std::uint64_t>();
    c.window = in.value<std::uint64_t>();
    c.begin = in.value<std::uint64_t>();
    c.completion = in.value<std::uint32_t>();
    c.range = in.value<BufferRange>();
    return nullptr;
}

const char* read_body(FieldReader& in, DetachWindow& c) {
    c.team = in.value<std::uint64_t>();
    c.window = in.value<std::uint64_t>();
    c.begin = in.value<std::uint64_t>();
    c.completion = in.value<std::uint32_t>();
    return nullptr;
}

const char* read_body(FieldReader& in, WindowOperation& c) {
    c.team = in.value<std::uint64_t>();
    c.window = in.value<std::uint64_t>();
    c.offset = in.value<std::uint64_t>();
    c.bytes = in.value<std::uint64_t>();
    c.completion = in.value<std::uint32_t>();
    c.target = in.value<std::uint32_t>();
    c.operation = in.value<std::uint8_t>();
    c.type = in.value<std::uint8_t>();
    c.reduction = in.value<std::uint8_t>();
    c.ordered = in.value<std::uint8_t>();
    c.segments = in.value<std::uint32_t>();
    c.first = in.value<std::uint32_t>();
    c.origin = in.value<BufferRange>();
    c.result = in.value<BufferRange>();
    const auto part = in.blob(max_record_bytes);
    c.part = Packed<rma::Segment>(part);
    c.inlined = in.blob(rma::inline_bytes);
    if (!rma::is_kind(c.operation) || c.ordered > 1) return "an unknown operation on a window";
    const bool fits = part.size() % sizeof(rma::Segment) == 0 && c.segments <= rma::max_segments &&
                      c.first <= c.segments && c.part.size() <= c.segments - c.first &&
                      (c.part.size() > 0 || c.segments == 0);
    return fits ? nullptr : "an operation on a window with a wrong list of segments";
}

const char* read_body(FieldReader& in, FlushWindow& c) {
    c.team = in.value<std::uint64_t>();
    c.window = in.value<std::uint64_t>();
    c.completion = in.value<std::uint32_t>();
    c.target = in.value<std::uint32_t>();
    return nullptr;
}

}  // namespace offpath::control
