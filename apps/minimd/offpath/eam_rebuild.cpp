#include "minimd/offpath/eam_rebuild.h"

#include <algorithm>

#include "minimd/dynamics/stopwatch.h"

namespace minimd {

template <typename Real>
typename EamRebuild<Real>::Result EamRebuild<Real>::finish(const Old& old,
                                                           const Neighborhood<Real>& neighborhood,
                                                           Device<Real>* device, bool energy,
                                                           const std::function<void()>& computing,
                                                           AlignedVector<Real>& f, Times& times) {
    const bool home = neighborhood.shell() == Neighborhood<Real>::Shell::eighth;
    const auto host_densities = [&] {
        return forces_.all_densities(old.x, old.slots, neighborhood, old.lists, energy, density_);
    };
    Result result;
    Stopwatch watch;
    Real* density = device != nullptr ? device->densities() : nullptr;
    const bool by_device = density != nullptr;
    double pair_energy = 0.0;
    if (!by_device) {
        pair_energy = host_densities();
        density = density_.data();
    }
    watch.lap(times.force);

    Stopwatch after;
    if (home) {
        old.halo.start_reverse_scalar(density);
        old.halo.finish_reverse_scalar(density);
    }
    watch.lap(times.communication);
    derivative_.assign(static_cast<std::size_t>(old.slots), Real{0});
    result.sum.energy = forces_.embed(old.x, old.layout, old.local_slots, density, derivative_.data());
    watch.lap(times.force);
    old.halo.start_update_scalar(derivative_.data());
    old.halo.finish_update_scalar(derivative_.data());
    watch.lap(times.communication);

    if (by_device) device->take_derivatives(derivative_);
    computing();
    if (by_device) {
        f.assign(3 * static_cast<std::size_t>(old.slots), Real{0});
        const Real* ghosts = device->ghost_forces(true);
        if (home && ghosts != nullptr)
            std::copy(ghosts + 3 * static_cast<std::ptrdiff_t>(old.local_slots), ghosts + f.size(),
                      f.begin() + 3 * static_cast<std::ptrdiff_t>(old.local_slots));
        result.outcome = device->finish();
    }
    if (result.outcome) {
        result.sum += result.outcome->sum;
    } else {
        // The pairs in range are with the device that is lost.
        if (by_device) pair_energy = host_densities();
        result.sum +=
            {pair_energy, forces_.all_forces(old.x, old.slots, neighborhood, derivative_.data(), energy, f)};
    }
    watch.lap(times.force);
    if (home) {
        old.halo.start_reverse(f.data());
        old.halo.finish_reverse(f.data());
    }
    watch.lap(times.communication);
    after.lap(result.seconds);
    return result;
}

template class EamRebuild<float>;
template class EamRebuild<double>;

}  // namespace minimd
