#include "minimd/offpath/eam_rebuild.h"

#include <algorithm>

#include "minimd/domain/stopwatch.h"

namespace minimd {

template <typename Real>
double EamRebuild<Real>::host_densities() {
    return forces_.all_densities(old_.x, old_.slots, *old_.neighborhood, *old_.lists, energy_, density_);
}

template <typename Real>
double EamRebuild<Real>::exchange(const Old& old, Device<Real>* device, bool energy, Times& times) {
    Stopwatch watch;
    old_ = old;
    energy_ = energy;
    sum_ = {};
    Halo<Real>& halo = *old.halo;
    Real* density = device != nullptr ? device->densities() : nullptr;
    by_device_ = density != nullptr;
    if (!by_device_) {
        sum_.energy = host_densities();
        density = density_.data();
    }
    watch.lap(times.force);

    const Stopwatch after;
    if (old.neighborhood->shell() == Neighborhood<Real>::Shell::eighth) {
        halo.start_reverse_scalar(density);
        halo.finish_reverse_scalar(density);
    }
    watch.lap(times.communication);
    derivative_.assign(static_cast<std::size_t>(old.slots), Real{0});
    sum_.energy += forces_.embed(old.x, old.layout, old.local_slots, density, derivative_.data());
    watch.lap(times.force);
    halo.start_update_scalar(derivative_.data());
    halo.finish_update_scalar(derivative_.data());
    watch.lap(times.communication);
    if (device != nullptr && by_device_) device->take_derivatives(derivative_);
    watch.lap(times.force);
    return after.seconds();
}

template <typename Real>
typename EamRebuild<Real>::Result EamRebuild<Real>::finish(Device<Real>* device, AlignedVector<Real>& f,
                                                           Times& times) {
    const bool home = old_.neighborhood->shell() == Neighborhood<Real>::Shell::eighth;
    Stopwatch watch;
    Result result;
    if (by_device_) {
        f.assign(3 * static_cast<std::size_t>(old_.slots), Real{0});
        const auto own = 3 * static_cast<std::ptrdiff_t>(old_.local_slots);
        const Real* ghosts = device->ghost_forces(true);
        if (home && ghosts != nullptr) std::copy(ghosts + own, ghosts + f.size(), f.begin() + own);
        result.outcome = device->finish();
    }
    if (result.outcome) {
        sum_ += result.outcome->sum;
    } else {
        // The pairs in range are with the device that is lost.
        if (by_device_) sum_.energy += host_densities();
        sum_.virial +=
            forces_.all_forces(old_.x, old_.slots, *old_.neighborhood, derivative_.data(), energy_, f);
    }
    watch.lap(times.force);
    if (home) {
        old_.halo->start_reverse(f.data());
        old_.halo->finish_reverse(f.data());
    }
    watch.lap(times.communication);
    result.sum = sum_;
    return result;
}

template class EamRebuild<float>;
template class EamRebuild<double>;

}  // namespace minimd
