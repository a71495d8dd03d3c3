// Checks of accesses that this engine did not make itself. Pure.
#pragma once

#include "rma/access.h"
#include "schedule/op.h"

#include <span>

namespace offpath::engine {

inline schedule::DataType type_of(const rma::Access& access) {
    return static_cast<schedule::DataType>(access.type);
}

// The unit in which the access moves bytes: one element of an update, else 1. 0: an update of an unknown type
// or reduction.
std::uint64_t unit_of(const rma::Access& access);
// Whether it moves at least one unit, and whole units only. A compare_swap moves exactly one.
bool is_whole(const rma::Access& access);
// Whether the segments have whole units each, and all bytes of the access together.
bool add_up(std::span<const rma::Segment> segments, const rma::Access& access);

}  // namespace offpath::engine
