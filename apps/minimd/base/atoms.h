// Atoms outside the simulation, when they are created, read or written.
//
// Positions are in the box [0, length) of each dimension. The vectors of one object have equal lengths. The
// objects do not synchronise threads.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace minimd {

using Vec3 = std::array<double, 3>;

struct AtomList {
    std::vector<std::int64_t> id;    // from 1 to the number of atoms of the whole system
    std::vector<std::int32_t> type;  // from 0
    std::vector<Vec3> x, v;

    std::size_t size() const { return id.size(); }
};

// One rank's part of a system.
struct System {
    Vec3 box{};              // lengths of the whole system
    std::int64_t atoms = 0;  // in the whole system
    int types = 1;
    double mass = 1.0;
    double density = 0.0;   // atoms per volume
    std::int64_t step = 0;  // of the restart file, or 0
    AtomList local;         // those in this rank's subdomain
};

}  // namespace minimd
