#include "minimd/dynamics/forces.h"

#include <omp.h>

#include <algorithm>

#include "minimd/dynamics/stopwatch.h"

namespace minimd {

template <typename Real>
LennardJonesForces<Real>::LennardJonesForces(const Settings& settings, const Kernels<Real>& kernels)
    : kernels_(kernels),
      parameters_{settings.cutoff, settings.epsilon, settings.sigma, settings.intensity},
      threads_(settings.threads),
      thread_f_(static_cast<std::size_t>(settings.threads - 1)) {}

template <typename Real>
EnergyVirial LennardJonesForces<Real>::run(Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                                           bool boundary, bool energy) {
    using Shell = typename Neighborhood<Real>::Shell;
    const Shell shell = neighborhood.shell();
    const bool both_sides = shell == Shell::eighth || (shell == Shell::one_sided && !boundary);
    // What is listed from one side only is in the lists of the other atom's rank, or row, too.
    const double weight = both_sides ? 1.0 : 0.5;
    const std::vector<PairLists>& lists = neighborhood.lists();
    const auto part = [&](std::size_t thread, Real* f) {
        const PairList& list = boundary ? lists[thread].boundary : lists[thread].interior;
        return kernels_.lennard_jones(particles.x.data(), f, list.view(), parameters_, {energy, both_sides});
    };
    EnergyVirial sum;
    if (threads_ == 1) {
        sum = part(0, particles.f.data());
    } else {
        std::vector<EnergyVirial> sums(static_cast<std::size_t>(threads_));
#pragma omp parallel num_threads(threads_)
        {
            const auto thread = static_cast<std::size_t>(omp_get_thread_num());
            sums[thread] = part(thread, thread == 0 ? particles.f.data() : thread_f_[thread - 1].data());
        }
        for (const EnergyVirial& each : sums)
            sum += each;
    }
    return {weight * sum.energy, weight * sum.virial};
}

template <typename Real>
EnergyVirial LennardJonesForces<Real>::compute(Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                                               bool fresh, bool energy, Times& times) {
    Stopwatch watch;
    Halo<Real>& halo = neighborhood.halo();
    if (!fresh) halo.start_update(particles);
    watch.lap(times.communication);

    const std::size_t reals = particles.reals(particles.slots);
    particles.f.resize(reals);
    std::fill(particles.f.begin(), particles.f.end(), Real{0});
    for (AlignedVector<Real>& f : thread_f_) {
        f.resize(reals);
        std::fill(f.begin(), f.end(), Real{0});
    }
    EnergyVirial sum = run(particles, neighborhood, false, energy);
    watch.lap(times.force);

    if (!fresh) halo.finish_update(particles);
    watch.lap(times.communication);

    sum += run(particles, neighborhood, true, energy);
    for (const AlignedVector<Real>& f : thread_f_)
        for (std::size_t i = 0; i < reals; ++i)
            particles.f[i] += f[i];
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
