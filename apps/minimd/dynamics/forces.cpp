#include "minimd/dynamics/forces.h"

#include <algorithm>

#include "minimd/dynamics/stopwatch.h"
#include "minimd/kernels/threads.h"

namespace minimd {

template <typename Real>
LennardJonesForces<Real>::LennardJonesForces(const Settings& settings, const Kernels<Real>& kernels)
    : kernels_(kernels),
      parameters_{settings.cutoff, settings.epsilon, settings.sigma, settings.intensity},
      slowness_(settings.where == Where::devices && !settings.needs_device() ? settings.device_slowness : 1) {
}

template <typename Real>
EnergyVirial LennardJonesForces<Real>::rows(const Real* x, std::span<const PairRows> parts, bool both_sides,
                                            bool energy, AlignedVector<Real>& f) {
    return add_on_threads(kernels_.lennard_jones, x, f.data(), f.size(), parts, parameters_,
                          {energy, both_sides}, thread_f_);
}

template <typename Real>
EnergyVirial LennardJonesForces<Real>::run(Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                                           bool boundary, bool energy) {
    const bool both_sides = neighborhood.both_sides(boundary);
    // What is listed from one side only is in the lists of the other atom's rank, or row, too.
    const double weight = both_sides ? 1.0 : 0.5;
    std::vector<PairRows> parts;
    for (const PairLists& lists : neighborhood.lists())
        parts.push_back((boundary ? lists.boundary : lists.interior).view());
    // All but the last time is for nothing, and takes the time that a slower device would.
    for (int time = 1; time < slowness_; ++time) {
        spare_f_.resize(particles.f.size());
        std::fill(spare_f_.begin(), spare_f_.end(), Real{0});
        rows(particles.x.data(), parts, both_sides, energy, spare_f_);
    }
    const EnergyVirial sum = rows(particles.x.data(), parts, both_sides, energy, particles.f);
    return {weight * sum.energy, weight * sum.virial};
}

template <typename Real>
EnergyVirial LennardJonesForces<Real>::compute(Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                                               bool fresh, bool energy, Times& times) {
    Stopwatch watch;
    Halo<Real>& halo = neighborhood.halo();
    if (!fresh) halo.start_update(particles);
    watch.lap(times.communication);

    particles.f.resize(particles.reals(particles.slots));
    std::fill(particles.f.begin(), particles.f.end(), Real{0});
    EnergyVirial sum = run(particles, neighborhood, false, energy);
    watch.lap(times.force);

    if (!fresh) halo.finish_update(particles);
    watch.lap(times.communication);

    sum += run(particles, neighborhood, true, energy);
    watch.lap(times.force);

    if (neighborhood.shell() == Neighborhood<Real>::Shell::eighth) {
        halo.start_reverse(particles.f.data());
        halo.finish_reverse(particles.f.data());
    }
    watch.lap(times.communication);
    return sum;
}

template class LennardJonesForces<float>;
template class LennardJonesForces<double>;

}  // namespace minimd
