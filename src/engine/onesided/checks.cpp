#include "engine/onesided/checks.h"

namespace offpath::engine {

std::uint64_t unit_of(const rma::Access& access) {
    if (!rma::is_update(access.kind)) return 1;
    const bool known = access.kind == rma::OpKind::compare_swap || access.reduction >= rma::replace ||
                       schedule::defined(type_of(access), static_cast<schedule::Reduction>(access.reduction));
    return known ? size_of(type_of(access)) : 0;
}

bool is_whole(const rma::Access& access) {
    const std::uint64_t unit = unit_of(access);
    if (unit == 0 || access.bytes == 0 || access.bytes % unit != 0) return false;
    return access.kind != rma::OpKind::compare_swap || access.bytes == unit;
}

bool add_up(std::span<const rma::Segment> segments, const rma::Access& access) {
    const std::uint64_t unit = unit_of(access);
    std::uint64_t rest = access.bytes;
    for (const rma::Segment& segment : segments) {
        if (segment.bytes == 0 || segment.bytes > rest || segment.bytes % unit != 0) return false;
        rest -= segment.bytes;
    }
    return rest == 0;
}

}  // namespace offpath::engine
