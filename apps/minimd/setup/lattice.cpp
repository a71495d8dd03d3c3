#include "minimd/setup/lattice.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "minimd/base/units.h"
#include "minimd/setup/random_velocities.h"

namespace minimd {

namespace {

double lattice_constant(double density) {
    return std::pow(4.0 / density, 1.0 / 3.0);
}

// Returns the numbers of the half-cell planes of dimension `d` that lie in this rank's subdomain.
std::vector<int> own_planes(int unit_cells, double half_cell, const Decomposition& decomposition, int d) {
    std::vector<int> planes;
    const double lo = decomposition.lo()[d], hi = decomposition.hi()[d];
    const auto first = std::max(0, static_cast<int>(lo / half_cell) - 1);
    for (int i = first; i < 2 * unit_cells && half_cell * i < hi; ++i)
        if (half_cell * i >= lo) planes.push_back(i);
    return planes;
}

// Returns a type that looks random but follows from the id.
std::int32_t type_of(std::int64_t id, int types) {
    std::uint64_t mixed = static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15ull;
    mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93ull;
    return static_cast<std::int32_t>((mixed >> 32) % static_cast<std::uint64_t>(types));
}

void scale_to_temperature(const Settings& settings, const DrawSums& sums, System& system) {
    const Vec3 mean = sums.mean(system.atoms);
    const double temperature = constants_of(settings.units).mass_velocity2 * system.mass *
                               sums.squares_about_mean(system.atoms) /
                               freedom_energy(settings.units, system.atoms);
    const double factor = std::sqrt(settings.temperature / temperature);
    for (Vec3& v : system.local.v)
        for (std::size_t d = 0; d < 3; ++d)
            v[d] = (v[d] - mean[d]) * factor;
}

}  // namespace

Vec3 lattice_box(const Settings& settings) {
    const double cell = lattice_constant(settings.density);
    return {settings.unit_cells[0] * cell, settings.unit_cells[1] * cell, settings.unit_cells[2] * cell};
}

std::int64_t lattice_atoms(const Settings& settings) {
    const auto& [nx, ny, nz] = settings.unit_cells;
    return std::int64_t{4} * nx * ny * nz;
}

System create_lattice(const Settings& settings, const Vec3& box, const Decomposition& decomposition,
                      double mass) {
    const auto& [nx, ny, nz] = settings.unit_cells;
    System system;
    system.box = box;
    system.atoms = lattice_atoms(settings);
    system.types = settings.types;
    system.mass = mass;
    system.density = settings.density;

    const double half_cell = 0.5 * lattice_constant(settings.density);
    std::vector<int> planes[3];
    for (int d = 0; d < 3; ++d)
        planes[d] = own_planes(settings.unit_cells[static_cast<std::size_t>(d)], half_cell, decomposition, d);

    AtomList& atoms = system.local;
    const std::size_t most = planes[0].size() * planes[1].size() * planes[2].size() / 2 + 1;
    atoms.id.reserve(most);
    atoms.type.reserve(most);
    atoms.x.reserve(most);
    atoms.v.reserve(most);
    DrawSums sums;
    constexpr auto unit = static_cast<double>(park_miller_modulus);
    for (const int k : planes[2])
        for (const int j : planes[1])
            for (const int i : planes[0]) {
                if ((i + j + k) % 2 != 0) continue;
                const std::int64_t site = (std::int64_t{k} * 2 * ny + j) * 2 * nx + i + 1;
                const Draws draws = draws_of_site(site);
                sums.add(draws);
                // Of two neighbouring sites in x, exactly one has an atom.
                atoms.id.push_back((site - 1) / 2 + 1);
                atoms.type.push_back(type_of(atoms.id.back(), settings.types));
                atoms.x.push_back({half_cell * i, half_cell * j, half_cell * k});
                atoms.v.push_back({draws[0] / unit, draws[1] / unit, draws[2] / unit});
            }

    auto made = static_cast<std::int64_t>(atoms.size());
    MPI_Allreduce(MPI_IN_PLACE, &made, 1, MPI_INT64_T, MPI_SUM, decomposition.comm());
    if (made != system.atoms)
        throw std::runtime_error("the lattice has " + std::to_string(made) + " atoms instead of " +
                                 std::to_string(system.atoms));
    sums.reduce(decomposition.comm());
    scale_to_temperature(settings, sums, system);
    return system;
}

}  // namespace minimd
