#include "minimd/offpath/eam_offload.h"

#include <algorithm>

#include "minimd/base/stopwatch.h"

namespace minimd {

namespace {

// The portions in which the loops keep the pairs of the host's part.
constexpr std::size_t interior = 0, boundary = 1;

}  // namespace

template <typename Real>
double EamOffload<Real>::host_densities() {
    return forces_.all_densities(input_.x, input_.slots, *input_.neighborhood, *input_.lists, energy_,
                                 density_);
}

template <typename Real>
double EamOffload<Real>::part_densities(Times& times) {
    Stopwatch watch;
    const Neighborhood<Real>& neighborhood = *input_.neighborhood;
    EamLoops<Real>& loops = forces_.loops();
    density_.assign(static_cast<std::size_t>(input_.slots), Real{0});
    loops.begin(input_.slots);
    if (input_.stale != nullptr) input_.halo->start_update(*input_.stale);
    watch.lap(times.communication);
    std::vector<PairRows> rows, ghosts;
    for (std::size_t t = 0; t < input_.lists->size(); ++t) {
        const PairLists& each = (*input_.lists)[t];
        rows.push_back(each.interior.view(0, static_cast<std::size_t>(input_.first_rows[t])));
        ghosts.push_back(each.boundary.view());
    }
    const Stopwatch at_rows;
    double sum = loops.densities(input_.x, rows, forces_.table(), {energy_, neighborhood.both_sides(false)},
                                 interior, density_.data());
    spent_.rows += at_rows.seconds();
    watch.lap(times.force);
    if (input_.stale != nullptr) input_.halo->finish_update(*input_.stale);
    watch.lap(times.communication);
    if (!input_.device_boundary)
        sum += loops.densities(input_.x, ghosts, forces_.table(), {energy_, neighborhood.both_sides(true)},
                               boundary, density_.data());
    loops.gather_densities(density_.data(), 0, input_.slots);
    watch.lap(times.force);
    return sum;
}

template <typename Real>
double EamOffload<Real>::part_forces(Real* f) {
    const Neighborhood<Real>& neighborhood = *input_.neighborhood;
    EamLoops<Real>& loops = forces_.loops();
    const Stopwatch at_rows;
    double sum =
        loops.forces(input_.x, derivative_.data(), {energy_, neighborhood.both_sides(false)}, interior, f);
    spent_.rows += at_rows.seconds();
    if (!input_.device_boundary)
        sum +=
            loops.forces(input_.x, derivative_.data(), {energy_, neighborhood.both_sides(true)}, boundary, f);
    loops.gather_forces(f, 0, input_.slots);
    return sum;
}

template <typename Real>
void EamOffload<Real>::exchange(const Input& input, Device<Real>* device, bool energy, Times& times) {
    input_ = input;
    energy_ = energy;
    sum_ = part_ = {};
    spent_ = {};
    Halo<Real>& halo = *input.halo;
    if (device != nullptr) part_.energy = part_densities(times);
    Stopwatch watch;
    const Real* devices = device != nullptr ? device->densities() : nullptr;
    spent_.waiting += watch.seconds();
    shared_ = devices != nullptr;
    if (shared_) {
        const std::int32_t end = input.device_boundary ? input.slots : input.local_slots;
        for (auto s = static_cast<std::size_t>(device->first_slot()); s < static_cast<std::size_t>(end); ++s)
            density_[s] += devices[s];
    } else {
        sum_.energy = host_densities();
    }
    watch.lap(times.force);

    const Stopwatch after;
    if (home()) {
        halo.start_reverse_scalar(density_.data());
        halo.finish_reverse_scalar(density_.data());
    }
    watch.lap(times.communication);
    derivative_.assign(static_cast<std::size_t>(input.slots), Real{0});
    sum_.energy +=
        forces_.embed(input.x, input.layout, input.local_slots, density_.data(), derivative_.data());
    watch.lap(times.force);
    halo.start_update_scalar(derivative_.data());
    halo.finish_update_scalar(derivative_.data());
    watch.lap(times.communication);
    if (shared_) device->take_derivatives(derivative_);
    watch.lap(times.force);
    spent_.between = after.seconds();
}

template <typename Real>
typename EamOffload<Real>::Result EamOffload<Real>::finish(Device<Real>* device, AlignedVector<Real>& f,
                                                           Times& times) {
    Stopwatch watch;
    Result result;
    if (shared_) {
        f.assign(3 * static_cast<std::size_t>(input_.slots), Real{0});
        part_.virial = part_forces(f.data());
        const Stopwatch waiting;
        const auto own = 3 * static_cast<std::ptrdiff_t>(input_.local_slots);
        if (input_.device_boundary && home())
            if (const Real* ghosts = device->ghost_forces(true))
                std::copy(ghosts + own, ghosts + f.size(), f.begin() + own);
        result.outcome = device->finish();
        spent_.waiting += waiting.seconds();
    }
    if (result.outcome) {
        sum_ += part_;
        sum_ += result.outcome->sum;
    } else {
        // The pairs in range were on the lost device.
        if (shared_) sum_.energy += host_densities();
        sum_.virial +=
            forces_.all_forces(input_.x, input_.slots, *input_.neighborhood, derivative_.data(), energy_, f);
    }
    watch.lap(times.force);
    if (home()) {
        input_.halo->start_reverse(f.data());
        input_.halo->finish_reverse(f.data());
    }
    watch.lap(times.communication);
    result.sum = sum_;
    return result;
}

template class EamOffload<float>;
template class EamOffload<double>;

}  // namespace minimd
