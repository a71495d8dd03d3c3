#include "minimd/dynamics/forces.h"

#include <algorithm>

#include "minimd/base/stopwatch.h"
#include "minimd/kernels/threads.h"

namespace minimd {

template <typename Real>
LennardJonesForces<Real>::LennardJonesForces(const Settings& settings, const Kernels<Real>& kernels)
    : kernels_(kernels),
      parameters_{settings.cutoff, settings.epsilon, settings.sigma, settings.intensity},
      pieces_(settings.halo == HaloKind::polled ? 8 : 1),
      slowness_(settings.where == Where::devices && !settings.needs_device() ? settings.device_slowness : 1) {
}

template <typename Real>
EnergyVirial LennardJonesForces<Real>::rows(const Real* x, std::span<const PairRows> parts, bool both_sides,
                                            bool energy, AlignedVector<Real>& f) {
    return add_on_threads(kernels_.lennard_jones, x, f.data(), f.size(), parts, parameters_,
                          {energy, both_sides}, thread_f_);
}

template <typename Real>
EnergyVirial LennardJonesForces<Real>::run_rows(Particles<Real>& particles, std::span<const PairRows> parts,
                                                bool both_sides, bool energy) {
    // All repetitions but the last have no effect: they only take the time that a slower device would need.
    for (int time = 1; time < slowness_; ++time) {
        spare_f_.resize(particles.f.size());
        std::fill(spare_f_.begin(), spare_f_.end(), Real{0});
        rows(particles.x.data(), parts, both_sides, energy, spare_f_);
    }
    return rows(particles.x.data(), parts, both_sides, energy, particles.f);
}

template <typename Real>
EnergyVirial LennardJonesForces<Real>::run(Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                                           PairPart part, bool energy) {
    const bool both_sides = neighborhood.both_sides(part == PairPart::boundary);
    EnergyVirial sum;
    std::vector<PairRows> parts;
    for (int piece = 0; piece < pieces_; ++piece) {
        if (piece > 0) neighborhood.halo().poll();
        parts.clear();
        for (const PairLists& lists : neighborhood.lists()) {
            const PairRows all = rows_of(lists, part);
            const std::size_t count = all.rows.size(), pieces = static_cast<std::size_t>(pieces_),
                              at = static_cast<std::size_t>(piece), first = count * at / pieces;
            parts.push_back({all.rows.subspan(first, count * (at + 1) / pieces - first), all.blocks});
        }
        sum += run_rows(particles, parts, both_sides, energy);
    }
    // A pair that is listed from one side only is also in the list of the other atom's rank or row.
    const double weight = both_sides ? 1.0 : 0.5;
    return {weight * sum.energy, weight * sum.virial};
}

template <typename Real>
EnergyVirial LennardJonesForces<Real>::compute(Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                                               bool fresh, bool energy, Times& times) {
    Stopwatch watch;
    Halo<Real>& halo = neighborhood.halo();
    // While ghosts travel, in either direction, there are forces to compute.
    const bool home = neighborhood.shell() == Neighborhood<Real>::Shell::eighth;
    const bool halves = home && !fresh && halo.travels();
    if (!fresh) halo.start_update(particles);
    watch.lap(times.communication);

    particles.f.resize(particles.reals(particles.slots));
    std::fill(particles.f.begin(), particles.f.end(), Real{0});
    EnergyVirial sum;
    if (!fresh)
        sum += run(particles, neighborhood, halves ? PairPart::first_interior : PairPart::interior, energy);
    watch.lap(times.force);

    if (!fresh) halo.finish_update(particles);
    watch.lap(times.communication);

    sum += run(particles, neighborhood, PairPart::boundary, energy);
    watch.lap(times.force);

    if (home) halo.start_reverse(particles.f.data());
    watch.lap(times.communication);

    if (fresh || halves)
        sum += run(particles, neighborhood, fresh ? PairPart::interior : PairPart::second_interior, energy);
    watch.lap(times.force);

    if (home) halo.finish_reverse(particles.f.data());
    watch.lap(times.communication);
    return sum;
}

template class LennardJonesForces<float>;
template class LennardJonesForces<double>;

}  // namespace minimd
