#include "minimd/dynamics/eam_forces.h"

#include <fmt/format.h>

#include <algorithm>

#include "minimd/dynamics/stopwatch.h"
#include "support/mpi_program.h"

namespace minimd {

namespace {

// So many rows at once: how many pairs they yield is not known before, and room is made for all.
constexpr std::size_t rows_at_once = 64;

template <typename Vector>
void make_room(Vector& vector, std::size_t needed) {
    if (vector.size() < needed) vector.resize(std::max(needed, vector.size() * 3 / 2));
}

template <typename Call>
double sum_over_threads(std::size_t threads, Call&& call) {
    if (threads == 1) return call(std::size_t{0});
    std::vector<double> sums(threads);
#pragma omp parallel for schedule(static, 1) num_threads(static_cast<int>(threads))
    for (std::size_t part = 0; part < threads; ++part)
        sums[part] = call(part);
    double sum = 0.0;
    for (const double each : sums)
        sum += each;
    return sum;
}

}  // namespace

template <typename Real>
EamPairs<Real>& EamPairStore<Real>::room_for(const PairRows& rows, int lanes) {
    std::size_t blocks = 0;
    for (const PairRow& row : rows.rows)
        blocks += static_cast<std::size_t>(row.end - row.begin);
    constexpr std::size_t spare = 64;
    make_room(rows_, pairs_.row_count + 2 * rows.rows.size() + blocks / 32 + spare);
    make_room(blocks_, pairs_.block_count + blocks + spare);
    const std::size_t pairs = pairs_.pair_count + blocks * cluster_size * static_cast<std::size_t>(lanes);
    make_room(by_density_, pairs + spare);
    make_room(by_distance_, pairs + spare);
    pairs_.rows = rows_.data();
    pairs_.blocks = blocks_.data();
    pairs_.by_density = by_density_.data();
    pairs_.by_distance = by_distance_.data();
    return pairs_;
}

template <typename Real>
EamForces<Real>::EamForces(const Settings& settings, const Kernels<Real>& kernels, const EamTables& tables)
    : tables_(tables),
      kernels_(eam_kernels<Real>(kernels.lanes)),
      lanes_(kernels.lanes),
      threads_(static_cast<std::size_t>(settings.threads)) {
    if (tables.cutoff > settings.list_cutoff())
        throw mpi_support::UsageError(
            fmt::format("{} has a cutoff of {}, beyond the neighbour lists' {}: raise the cutoff or the skin "
                        "of the input",
                        tables.file, tables.cutoff, settings.list_cutoff()));
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
void EamForces<Real>::begin_step(Particles<Real>& particles) {
    const auto slots = static_cast<std::size_t>(particles.slots);
    particles.f.assign(3 * slots, Real{0});
    derivative_.assign(slots, Real{0});
    for (std::size_t t = 0; t < threads_.size(); ++t) {
        threads_[t].density.assign(slots, Real{0});
        if (t > 0) threads_[t].f.assign(3 * slots, Real{0});
        for (const PairPart part : {PairPart::first_interior, PairPart::second_interior, PairPart::boundary})
            threads_[t].store(part).clear();
    }
}

template <typename Real>
double EamForces<Real>::densities(const Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                                  PairPart part, bool energy) {
    const ForceFlags flags{energy, neighborhood.both_sides(part == PairPart::boundary)};
    const double sum = sum_over_threads(threads_.size(), [&](std::size_t t) {
        Thread& thread = threads_[t];
        const PairRows all = rows_of(neighborhood.lists()[t], part);
        double energies = 0.0;
        for (std::size_t at = 0; at < all.rows.size(); at += rows_at_once) {
            const PairRows rows{all.rows.subspan(at, std::min(rows_at_once, all.rows.size() - at)),
                                all.blocks};
            energies += kernels_.density(particles.x.data(), thread.density.data(), rows, table_, flags,
                                         thread.store(part).room_for(rows, lanes_));
        }
        return energies;
    });
    return flags.both_sides ? sum : 0.5 * sum;
}

template <typename Real>
void EamForces<Real>::gather_densities(std::int32_t first, std::int32_t end) {
    for (std::size_t t = 1; t < threads_.size(); ++t)
        for (auto s = static_cast<std::size_t>(first); s < static_cast<std::size_t>(end); ++s)
            threads_[0].density[s] += threads_[t].density[s];
}

template <typename Real>
double EamForces<Real>::embed(const Particles<Real>& particles) {
    const Real* density = threads_[0].density.data();
    const auto slots = static_cast<std::size_t>(particles.local_slots);
    return sum_over_threads(threads_.size(), [&](std::size_t t) {
        double energies = 0.0;
        for (std::size_t s = slots * t / threads_.size(); s < slots * (t + 1) / threads_.size(); ++s) {
            if (particles.id[s] == 0) continue;
            const Spline::Point point = tables_.frho.at(static_cast<double>(density[s]));
            energies += point.value;
            derivative_[s] = static_cast<Real>(point.slope);
        }
        return energies;
    });
}

template <typename Real>
double EamForces<Real>::forces(Particles<Real>& particles, Neighborhood<Real>& neighborhood, PairPart part,
                               bool energy) {
    const ForceFlags flags{energy, neighborhood.both_sides(part == PairPart::boundary)};
    const double sum = sum_over_threads(threads_.size(), [&](std::size_t t) {
        Thread& thread = threads_[t];
        return kernels_.force(particles.x.data(), derivative_.data(),
                              t == 0 ? particles.f.data() : thread.f.data(), thread.store(part).pairs(),
                              flags);
    });
    return flags.both_sides ? sum : 0.5 * sum;
}

template <typename Real>
void EamForces<Real>::gather_forces(Particles<Real>& particles, std::int32_t first, std::int32_t end) {
    for (std::size_t t = 1; t < threads_.size(); ++t)
        for (std::size_t i = particles.reals(first); i < particles.reals(end); ++i)
            particles.f[i] += threads_[t].f[i];
}

template <typename Real>
EnergyVirial EamForces<Real>::compute(Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                                      bool fresh, bool energy, Times& times) {
    using enum PairPart;
    Stopwatch watch;
    Halo<Real>& halo = neighborhood.halo();
    const bool home = neighborhood.shell() == Neighborhood<Real>::Shell::eighth;
    begin_step(particles);
    Real* const density = threads_[0].density.data();
    watch.lap(times.force);
    if (!fresh) halo.start_update(particles);
    watch.lap(times.communication);
    EnergyVirial sum;
    sum.energy = densities(particles, neighborhood, first_interior, energy);
    watch.lap(times.force);
    if (!fresh) halo.finish_update(particles);
    watch.lap(times.communication);
    sum.energy += densities(particles, neighborhood, boundary, energy);
    watch.lap(times.force);

    if (home) {
        gather_densities(particles.local_slots, particles.slots);
        halo.start_reverse_scalar(density);
        watch.lap(times.communication);
    }
    sum.energy += densities(particles, neighborhood, second_interior, energy);
    gather_densities(0, particles.local_slots);
    watch.lap(times.force);
    if (home) {
        halo.finish_reverse_scalar(density);
        watch.lap(times.communication);
    }
    sum.energy += embed(particles);
    watch.lap(times.force);

    halo.start_update_scalar(derivative_.data());
    watch.lap(times.communication);
    sum.virial = forces(particles, neighborhood, first_interior, energy);
    if (!home) sum.virial += forces(particles, neighborhood, second_interior, energy);
    watch.lap(times.force);
    halo.finish_update_scalar(derivative_.data());
    watch.lap(times.communication);
    sum.virial += forces(particles, neighborhood, boundary, energy);
    watch.lap(times.force);

    if (home) {
        gather_forces(particles, particles.local_slots, particles.slots);
        halo.start_reverse(particles.f.data());
        watch.lap(times.communication);
        sum.virial += forces(particles, neighborhood, second_interior, energy);
    }
    gather_forces(particles, 0, particles.local_slots);
    watch.lap(times.force);
    if (home) {
        halo.finish_reverse(particles.f.data());
        watch.lap(times.communication);
    }
    return sum;
}

template class EamPairStore<float>;
template class EamPairStore<double>;
template class EamForces<float>;
template class EamForces<double>;

}  // namespace minimd
