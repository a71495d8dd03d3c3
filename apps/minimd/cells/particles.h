// A rank's atoms in their slots: its own first, then the ghosts, zone by zone.
//
// `x` and `f` have room for all slots, `v`, `id` and `type` for the rank's own slots. Fillers have id 0, no
// velocity and no force. One thread at a time changes the object.
#pragma once

#include <cstdint>
#include <vector>

#include "minimd/base/atoms.h"
#include "minimd/base/layout.h"

namespace minimd {

template <typename Real>
struct Particles {
    Layout layout;
    std::int32_t atoms = 0;        // this rank's own
    std::int32_t local_slots = 0;  // slots of own atoms, fillers included
    std::int32_t slots = 0;        // with those of the ghosts
    AlignedVector<Real> x, v, f;
    std::vector<std::int64_t> id;
    std::vector<std::int32_t> type;

    Real* position(std::int32_t slot) { return x.data() + layout.address(slot); }
    std::size_t reals(std::int32_t slot_count) const { return 3 * static_cast<std::size_t>(slot_count); }
};

// Puts atom i of `list` into slot i and adds fillers, for use before the first exchange of atoms.
template <typename Real>
Particles<Real> in_slots(Layout layout, const AtomList& list) {
    Particles<Real> p;
    p.layout = layout;
    p.atoms = static_cast<std::int32_t>(list.size());
    p.local_slots = p.slots = layout.padded(p.atoms);
    const auto slots = static_cast<std::size_t>(p.slots), lanes = static_cast<std::size_t>(layout.lanes);
    p.x.assign(p.reals(p.slots), static_cast<Real>(filler_edge));
    p.v.assign(p.reals(p.slots), Real{0});
    p.id.assign(slots, 0);
    p.type.assign(slots, 0);
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::size_t at = layout.address(static_cast<std::int32_t>(i));
        for (std::size_t d = 0; d < 3; ++d) {
            p.x[at + d * lanes] = static_cast<Real>(list.x[i][d]);
            p.v[at + d * lanes] = static_cast<Real>(list.v[i][d]);
        }
        p.id[i] = list.id[i];
        p.type[i] = list.type[i];
    }
    return p;
}

// An atom's three numbers in one place, for messages.
template <typename Real>
struct Triple {
    Real x, y, z;
};

}  // namespace minimd
