#include "minimd/offpath/eam_kernel_device.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace minimd {

namespace {

// The numbers of a step's parts.
constexpr std::size_t interior_densities = 0, boundary_densities = 1, all_forces = 2;

}  // namespace

template <typename Real>
EamKernelDevice<Real>::EamKernelDevice(std::unique_ptr<KernelRunner> runner, const KernelSettings& settings,
                                       const EamTable<Real>& table)
    : runner_(std::move(runner)),
      x_(*runner_),
      density_(*runner_),
      derivative_(*runner_),
      f_(*runner_),
      answers_(*runner_),
      lists_(*runner_) {
    arguments_.numbers = {sizeof(Real), settings.lanes};
    arguments_.threads = settings.threads;
    arguments_.slowness = settings.slowness;
    lost_ = !answers_.reserve(parts_.size() * sizeof(runtime::ForceAnswer)) || !send_table(table);
}

template <typename Real>
EamKernelDevice<Real>::~EamKernelDevice() {
    for (KernelRunner::Ticket& part : parts_)
        runner_->settle(part);
}

template <typename Real>
bool EamKernelDevice<Real>::send_table(const EamTable<Real>& table) {
    const runtime::EamTableArguments arguments{arguments_.numbers, table.last_row, 0,
                                               static_cast<double>(table.per_spacing),
                                               static_cast<double>(table.cutoff)};
    const std::size_t numbers = (static_cast<std::size_t>(table.last_row) + 1) * EamTable<Real>::row_size;
    const offpath_kernel_buffer_t rows{const_cast<Real*>(table.rows), numbers * sizeof(Real), OFFPATH_IN};
    KernelRunner::Ticket sending = 0;
    return runner_->start(Kernel::eam_table, &arguments, sizeof arguments, {&rows, 1}, sending) &&
           runner_->settle(sending);
}

template <typename Real>
bool EamKernelDevice<Real>::reserve(const Particles<Real>& particles) {
    const auto slots = static_cast<std::size_t>(particles.slots);
    return x_.reserve(3 * slots * sizeof(Real)) && density_.reserve(slots * sizeof(Real)) &&
           derivative_.reserve(slots * sizeof(Real)) && f_.reserve(3 * slots * sizeof(Real));
}

template <typename Real>
void EamKernelDevice<Real>::set_lists(const Particles<Real>&, Neighborhood<Real>& neighborhood) {
    if (lost_ || !lists_.fill(neighborhood.lists())) {
        lost_ = true;
        return;
    }
    arguments_.interior_both_sides = neighborhood.both_sides(false) ? 1 : 0;
    arguments_.boundary_both_sides = neighborhood.both_sides(true) ? 1 : 0;
    if (!runner_->in_place()) lost_ = !lists_.send();
}

template <typename Real>
runtime::ForceAnswer EamKernelDevice<Real>::answer(std::size_t part) const {
    runtime::ForceAnswer answer;
    std::memcpy(&answer, static_cast<const runtime::ForceAnswer*>(answers_.data()) + part, sizeof answer);
    return answer;
}

template <typename Real>
void EamKernelDevice<Real>::launch(std::size_t part, std::initializer_list<offpath_kernel_buffer_t> buffers) {
    std::vector<offpath_kernel_buffer_t> all{{static_cast<runtime::ForceAnswer*>(answers_.data()) + part,
                                              sizeof(runtime::ForceAnswer), OFFPATH_OUT}};
    all.insert(all.end(), buffers.begin(), buffers.end());
    lost_ = !runner_->start(part == all_forces ? Kernel::eam_forces : Kernel::eam_densities, &arguments_,
                            arguments_.bytes(), all, parts_[part]);
}

template <typename Real>
offpath_kernel_buffer_t EamKernelDevice<Real>::some(const DeviceMemory& memory, std::size_t first,
                                                    std::size_t end, offpath_access_t access) const {
    return {static_cast<Real*>(memory.data()) + first, (end - first) * sizeof(Real), access};
}

template <typename Real>
void EamKernelDevice<Real>::start(const Particles<Real>& particles, const Share& share) {
    way_.started();
    if (lost_ || !reserve(particles)) {
        lost_ = true;
        return;
    }
    arguments_.ranges = 0;
    std::int32_t begin = 0;
    for (std::size_t list = 0; list < lists_.ends().size(); ++list) {
        const std::int32_t end = lists_.ends()[list];
        arguments_.range[arguments_.ranges++] = {std::min(begin + share.first_rows[list], end), end};
        begin = end;
    }
    const std::span ranges(arguments_.range, static_cast<std::size_t>(arguments_.ranges));
    arguments_.own_slots = particles.local_slots;
    arguments_.slots = particles.slots;
    arguments_.interior_rows = lists_.interior_rows();
    arguments_.rows = lists_.rows();
    arguments_.energy = share.energy ? 1 : 0;
    arguments_.boundary = 0;
    arguments_.alone = share.boundary ? 0 : 1;
    arguments_.first_slot = share.boundary || arguments_.interior_both_sides == 0
                                ? 0
                                : lists_.first_slot(ranges, particles.layout, particles.local_slots);
    const auto first = static_cast<std::size_t>(arguments_.first_slot);
    const std::size_t own = particles.reals(particles.local_slots), all = particles.reals(particles.slots);
    std::memcpy(static_cast<Real*>(x_.data()) + 3 * first, particles.x.data() + 3 * first,
                (own - 3 * first) * sizeof(Real));
    if (runner_->in_place()) {
        launch(interior_densities, {some(x_, 0, all, OFFPATH_IN), some(density_, 0, all / 3, OFFPATH_INOUT),
                                    lists_.row_buffer(), lists_.block_buffer()});
    } else if (share.boundary) {
        launch(interior_densities, {some(x_, 0, own, OFFPATH_IN)});
    } else {
        launch(interior_densities,
               {some(x_, 3 * first, own, OFFPATH_IN), some(density_, first, own / 3, OFFPATH_OUT)});
    }
}

template <typename Real>
void EamKernelDevice<Real>::take_ghosts(const Particles<Real>& particles) {
    if (lost_) return;
    const std::size_t own = particles.reals(particles.local_slots), all = particles.reals(particles.slots);
    std::memcpy(static_cast<Real*>(x_.data()) + own, particles.x.data() + own, (all - own) * sizeof(Real));
    arguments_.boundary = 1;
    if (runner_->in_place()) {
        launch(boundary_densities, {some(x_, 0, all, OFFPATH_IN), some(density_, 0, all / 3, OFFPATH_INOUT),
                                    lists_.row_buffer(), lists_.block_buffer()});
    } else {
        launch(boundary_densities,
               {some(x_, own, all, OFFPATH_IN),
                some(density_, 0, static_cast<std::size_t>(arguments_.given_end()), OFFPATH_OUT)});
    }
}

template <typename Real>
const Real* EamKernelDevice<Real>::densities() {
    if (lost_) return nullptr;
    way_.asked(
        runner_->running(parts_[parts_[boundary_densities] != 0 ? boundary_densities : interior_densities]));
    // Numbers computed from the wrong lists would be wrong, so this also checks that the device has kept the
    // lists.
    for (const std::size_t part : {interior_densities, boundary_densities})
        if (!runner_->settle(parts_[part])) lost_ = true;
    if (!lists_.kept()) lost_ = true;
    if (lost_) return nullptr;
    const runtime::ForceAnswer last =
        answer(arguments_.boundary != 0 ? boundary_densities : interior_densities);
    way_.done(answer(interior_densities).begin, last.end);
    return static_cast<const Real*>(density_.data());
}

template <typename Real>
void EamKernelDevice<Real>::take_derivatives(std::span<const Real> derivatives) {
    if (lost_) return;
    way_of_forces_.started();
    std::memcpy(derivative_.data(), derivatives.data(), derivatives.size_bytes());
    const std::size_t slots = derivatives.size();
    const auto first = static_cast<std::size_t>(arguments_.first_slot),
               end = static_cast<std::size_t>(arguments_.given_end());
    arguments_.ranges = 0;
    if (runner_->in_place()) {
        launch(all_forces, {some(x_, 0, 3 * slots, OFFPATH_IN), some(derivative_, 0, slots, OFFPATH_IN),
                            some(f_, 0, 3 * slots, OFFPATH_INOUT)});
    } else {
        launch(all_forces,
               {some(derivative_, 0, slots, OFFPATH_IN), some(f_, 3 * first, 3 * end, OFFPATH_OUT)});
    }
}

template <typename Real>
const Real* EamKernelDevice<Real>::ghost_forces(bool wait) {
    if (lost_) return nullptr;
    if (!wait && runner_->running(parts_[all_forces])) return nullptr;
    lost_ = !runner_->settle(parts_[all_forces]);
    return lost_ ? nullptr : static_cast<const Real*>(f_.data());
}

template <typename Real>
std::optional<typename Device<Real>::Outcome> EamKernelDevice<Real>::finish() {
    way_of_forces_.asked(runner_->running(parts_[all_forces]));
    if (ghost_forces(true) == nullptr) return std::nullopt;
    const runtime::ForceAnswer forces = answer(all_forces);
    way_of_forces_.done(forces.begin, forces.end);
    typename Device<Real>::Outcome outcome;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
        if (part == boundary_densities && arguments_.alone != 0) continue;
        outcome.sum += answer(part).sum;
        outcome.seconds += answer(part).end - answer(part).begin;
    }
    const runtime::ForceAnswer last =
        answer(arguments_.boundary != 0 ? boundary_densities : interior_densities);
    const double densities = last.end - answer(interior_densities).begin;
    outcome.busy = std::max(
        outcome.seconds, densities + way_.seconds() + forces.end - forces.begin + way_of_forces_.seconds());
    outcome.first = 3 * static_cast<std::size_t>(arguments_.first_slot);
    outcome.forces = {static_cast<const Real*>(f_.data()) + outcome.first,
                      3 * static_cast<std::size_t>(arguments_.own_slots) - outcome.first};
    return outcome;
}

template class EamKernelDevice<float>;
template class EamKernelDevice<double>;

}  // namespace minimd
