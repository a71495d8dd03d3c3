// A rank's atoms in their slots: its own first, then the ghosts, zone by zone.
//
// `x` and `f` have room for all slots, `v`, `id` and `type` for the rank's own. Fillers have id 0, no
// velocity and no force. One thread at a time changes it.
#pragma once

#include <cstdint>
#include <vector>

#include "minimd/cells/layout.h"

namespace minimd {

template <typename Real>
struct Particles {
    Layout layout;
    std::int32_t atoms = 0;        // of this rank
    std::int32_t local_slots = 0;  // theirs, fillers included
    std::int32_t slots = 0;        // with the ghosts'
    AlignedVector<Real> x, v, f;
    std::vector<std::int64_t> id;
    std::vector<std::int32_t> type;

    Real* position(std::int32_t slot) { return x.data() + layout.address(slot); }
    std::size_t reals(std::int32_t slot_count) const { return 3 * static_cast<std::size_t>(slot_count); }
};

// A place for an atom's three numbers apart from the slots, for what travels.
template <typename Real>
struct Triple {
    Real x, y, z;
};

}  // namespace minimd
