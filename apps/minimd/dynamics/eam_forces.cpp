#include "minimd/dynamics/eam_forces.h"

#include <fmt/format.h>

#include <algorithm>

#include "minimd/base/stopwatch.h"
#include "support/mpi_program.h"

namespace minimd {

namespace {

// Returns the place in which EamLoops keep a part's pairs.
std::size_t portion_of(PairPart part) {
    switch (part) {
        case PairPart::boundary:
            return 1;
        case PairPart::second_interior:
            return 2;
        default:
            return 0;
    }
}

}  // namespace

template <typename Real>
EamPairTable<Real>::EamPairTable(const EamTables& tables) {
    const Spline &density = tables.rhor, &energy = tables.z2r;
    if (density.rows() != energy.rows() || density.per_spacing() != energy.per_spacing())
        throw mpi_support::UsageError(tables.file +
                                      ": densities and pair energies differ in their distances");
    const auto rows = static_cast<std::size_t>(density.rows());
    coefficients_.resize(rows * EamTable<Real>::row_size);
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t k = 0; k < 4; ++k) {
            Real* to = coefficients_.data() + row * EamTable<Real>::row_size + k;
            to[0] = static_cast<Real>(density.data()[row * Spline::row_size + 3 + k]);
            to[4] = static_cast<Real>(energy.data()[row * Spline::row_size + 3 + k]);
        }
    table_ = {coefficients_.data(), density.rows() - 2, static_cast<Real>(density.per_spacing()),
              static_cast<Real>(tables.cutoff)};
}

template <typename Real>
EamForces<Real>::EamForces(const Settings& settings, const Kernels<Real>& kernels, const EamTables& tables)
    : tables_(tables), table_(tables), loops_(kernels.lanes, static_cast<std::size_t>(settings.threads)) {
    if (tables.cutoff > settings.list_cutoff())
        throw mpi_support::UsageError(
            fmt::format("{} has a cutoff of {}, beyond the neighbour lists' {}: raise the cutoff or the skin "
                        "of the input",
                        tables.file, tables.cutoff, settings.list_cutoff()));
}

template <typename Real>
double EamForces<Real>::densities(const Real* x, const Neighborhood<Real>& neighborhood,
                                  const std::vector<PairLists>& lists, PairPart part, bool energy,
                                  Real* density) {
    std::vector<PairRows> parts;
    for (const PairLists& each : lists)
        parts.push_back(rows_of(each, part));
    return loops_.densities(x, parts, table(), {energy, neighborhood.both_sides(part == PairPart::boundary)},
                            portion_of(part), density);
}

template <typename Real>
double EamForces<Real>::forces(const Real* x, const Neighborhood<Real>& neighborhood, const Real* derivative,
                               PairPart part, bool energy, Real* f) {
    return loops_.forces(x, derivative, {energy, neighborhood.both_sides(part == PairPart::boundary)},
                         portion_of(part), f);
}

template <typename Real>
double EamForces<Real>::embed(const Real* x, Layout layout, std::int32_t slots, const Real* density,
                              Real* derivative) {
    const auto parts = static_cast<std::int64_t>(loops_.threads());
    double energies = 0.0;
#pragma omp parallel for schedule(static, 1) reduction(+ : energies) \
    num_threads(static_cast<int>(parts)) if (parts > 1)
    for (std::int64_t part = 0; part < parts; ++part)
        for (auto s = static_cast<std::int32_t>(slots * part / parts); s < slots * (part + 1) / parts; ++s) {
            if (x[layout.address(s)] <= static_cast<Real>(filler_edge)) continue;
            const Spline::Point point = tables_.frho.at(static_cast<double>(density[s]));
            energies += point.value;
            derivative[s] = static_cast<Real>(point.slope);
        }
    return energies;
}

template <typename Real>
double EamForces<Real>::all_densities(const Real* x, std::int32_t slots,
                                      const Neighborhood<Real>& neighborhood,
                                      const std::vector<PairLists>& lists, bool energy,
                                      AlignedVector<Real>& density) {
    density.assign(static_cast<std::size_t>(slots), Real{0});
    loops_.begin(slots);
    double sum = 0.0;
    for (const PairPart part : {PairPart::interior, PairPart::boundary})
        sum += densities(x, neighborhood, lists, part, energy, density.data());
    loops_.gather_densities(density.data(), 0, slots);
    return sum;
}

template <typename Real>
double EamForces<Real>::all_forces(const Real* x, std::int32_t slots, const Neighborhood<Real>& neighborhood,
                                   const Real* derivative, bool energy, AlignedVector<Real>& f) {
    f.assign(3 * static_cast<std::size_t>(slots), Real{0});
    double sum = 0.0;
    for (const PairPart part : {PairPart::interior, PairPart::boundary})
        sum += forces(x, neighborhood, derivative, part, energy, f.data());
    loops_.gather_forces(f.data(), 0, slots);
    return sum;
}

template <typename Real>
EnergyVirial EamForces<Real>::compute(Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                                      bool fresh, bool energy, Times& times) {
    using enum PairPart;
    Stopwatch watch;
    Halo<Real>& halo = neighborhood.halo();
    const bool home = neighborhood.shell() == Neighborhood<Real>::Shell::eighth;
    const auto slots = static_cast<std::size_t>(particles.slots);
    particles.f.assign(3 * slots, Real{0});
    density_.assign(slots, Real{0});
    derivative_.assign(slots, Real{0});
    loops_.begin(particles.slots);
    Real *const density = density_.data(), *const derivative = derivative_.data();
    const auto add_densities = [&](PairPart part) {
        return densities(particles.x.data(), neighborhood, neighborhood.lists(), part, energy, density);
    };
    const auto add_forces = [&](PairPart part) {
        return forces(particles.x.data(), neighborhood, derivative, part, energy, particles.f.data());
    };
    watch.lap(times.force);
    if (!fresh) halo.start_update(particles);
    watch.lap(times.communication);
    EnergyVirial sum;
    sum.energy = add_densities(first_interior);
    watch.lap(times.force);
    if (!fresh) halo.finish_update(particles);
    watch.lap(times.communication);
    sum.energy += add_densities(boundary);
    watch.lap(times.force);

    if (home) {
        loops_.gather_densities(density, particles.local_slots, particles.slots);
        halo.start_reverse_scalar(density);
        watch.lap(times.communication);
    }
    sum.energy += add_densities(second_interior);
    loops_.gather_densities(density, 0, particles.local_slots);
    watch.lap(times.force);
    if (home) {
        halo.finish_reverse_scalar(density);
        watch.lap(times.communication);
    }
    sum.energy += embed(particles.x.data(), particles.layout, particles.local_slots, density, derivative);
    watch.lap(times.force);

    halo.start_update_scalar(derivative);
    watch.lap(times.communication);
    sum.virial = add_forces(first_interior);
    if (!home) sum.virial += add_forces(second_interior);
    watch.lap(times.force);
    halo.finish_update_scalar(derivative);
    watch.lap(times.communication);
    sum.virial += add_forces(boundary);
    watch.lap(times.force);

    if (home) {
        loops_.gather_forces(particles.f.data(), particles.local_slots, particles.slots);
        halo.start_reverse(particles.f.data());
        watch.lap(times.communication);
        sum.virial += add_forces(second_interior);
    }
    loops_.gather_forces(particles.f.data(), 0, particles.local_slots);
    watch.lap(times.force);
    if (home) {
        halo.finish_reverse(particles.f.data());
        watch.lap(times.communication);
    }
    return sum;
}

template class EamPairTable<float>;
template class EamPairTable<double>;
template class EamForces<float>;
template class EamForces<double>;

}  // namespace minimd
