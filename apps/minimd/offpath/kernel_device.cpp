#include "minimd/offpath/kernel_device.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace minimd {

template <typename Real>
KernelDevice<Real>::KernelDevice(std::unique_ptr<KernelRunner> runner, const KernelSettings& settings)
    : runner_(std::move(runner)),
      x_(*runner_),
      f_(*runner_),
      answers_(*runner_),
      lists_{KernelLists(*runner_), KernelLists(*runner_)} {
    arguments_.numbers = {sizeof(Real), settings.lanes};
    arguments_.threads = settings.threads;
    arguments_.slowness = settings.slowness;
    arguments_.parameters = settings.parameters;
    lost_ = !answers_.reserve(parts_.size() * sizeof(runtime::ForceAnswer));
}

template <typename Real>
KernelDevice<Real>::~KernelDevice() {
    for (KernelRunner::Ticket& part : parts_)
        runner_->settle(part);
}

template <typename Real>
void KernelDevice<Real>::set_lists(const Particles<Real>& particles, Neighborhood<Real>& neighborhood) {
    KernelLists& lists = lists_[1 - latest_];
    if (lost_ || !lists.fill(neighborhood.lists())) {
        lost_ = true;
        return;
    }
    // Allocates now: a later allocation would ask the device in the middle of a step.
    KernelLists& next = lists_[latest_];
    const std::size_t bytes = particles.reals(particles.slots) * sizeof(Real);
    if (next.empty() && (!next.reserve_as(lists) || !x_.reserve(bytes) || !f_.reserve(bytes))) {
        lost_ = true;
        return;
    }
    latest_ = 1 - latest_;
    interior_both_sides_ = neighborhood.both_sides(false);
    boundary_both_sides_ = neighborhood.both_sides(true);
    if (!runner_->in_place()) lost_ = !lists.send();
}

template <typename Real>
void KernelDevice<Real>::launch(runtime::Part part, bool both_sides) {
    using runtime::Part;
    const std::size_t number = begins(part) ? 0 : part == Part::boundary ? 1 : 2;
    arguments_.part = part;
    arguments_.both_sides = both_sides ? 1 : 0;
    std::vector<offpath_kernel_buffer_t> buffers{
        {static_cast<runtime::ForceAnswer*>(answers_.data()) + number, sizeof(runtime::ForceAnswer),
         OFFPATH_OUT}};
    if (runner_->in_place()) {
        const KernelLists& lists = lists_[in_use_];
        buffers.push_back({x_.data(), reals_ * sizeof(Real), OFFPATH_IN});
        buffers.push_back({f_.data(), reals_ * sizeof(Real), OFFPATH_INOUT});
        buffers.push_back(lists.row_buffer());
        buffers.push_back(lists.block_buffer());
    } else {
        const std::size_t first = part == Part::boundary ? own_reals_ : first_real_,
                          end = part == Part::boundary ? reals_ : own_reals_;
        const auto some = [&](const DeviceMemory& memory, offpath_access_t access) {
            buffers.push_back(
                {static_cast<Real*>(memory.data()) + first, (end - first) * sizeof(Real), access});
        };
        if (part != Part::last) some(x_, OFFPATH_IN);
        if (part != Part::first) some(f_, OFFPATH_OUT);
    }
    lost_ = !runner_->start(Kernel::forces, &arguments_, arguments_.bytes(), buffers, parts_[number]);
}

template <typename Real>
void KernelDevice<Real>::start(const Particles<Real>& particles, const Share& share) {
    way_.started();
    own_reals_ = particles.reals(particles.local_slots);
    reals_ = particles.reals(particles.slots);
    if (lost_ || !x_.reserve(reals_ * sizeof(Real)) || !f_.reserve(reals_ * sizeof(Real))) {
        lost_ = true;
        return;
    }
    arguments_.own_reals = static_cast<std::int64_t>(own_reals_);
    arguments_.reals = static_cast<std::int64_t>(reals_);
    arguments_.energy = share.energy ? 1 : 0;
    arguments_.ranges = 0;
    rest_.clear();
    in_use_ = latest_;
    std::int32_t begin = 0;
    for (std::size_t list = 0; list < lists_[in_use_].ends().size(); ++list) {
        const std::int32_t end = lists_[in_use_].ends()[list];
        const std::int32_t first = std::min(begin + share.first_rows[list], end);
        const std::int32_t middle = share.boundary ? first + (end - first) / 2 : end;
        arguments_.range[arguments_.ranges++] = {first, middle};
        rest_.push_back({middle, end});
        begin = end;
    }
    const std::span ranges(arguments_.range, static_cast<std::size_t>(arguments_.ranges));
    first_real_ = share.boundary ? 0
                                 : particles.reals(interior_both_sides_
                                                       ? lists_[in_use_].first_slot(ranges, particles.layout,
                                                                                    particles.local_slots)
                                                       : 0);
    arguments_.first_real = static_cast<std::int64_t>(first_real_);
    std::memcpy(static_cast<Real*>(x_.data()) + first_real_, particles.x.data() + first_real_,
                (own_reals_ - first_real_) * sizeof(Real));
    launch(share.boundary ? runtime::Part::first : runtime::Part::whole, interior_both_sides_);
}

template <typename Real>
void KernelDevice<Real>::take_ghosts(const Particles<Real>& particles) {
    if (lost_) return;
    std::memcpy(static_cast<Real*>(x_.data()) + own_reals_, particles.x.data() + own_reals_,
                (reals_ - own_reals_) * sizeof(Real));
    const KernelLists& lists = lists_[in_use_];
    arguments_.ranges = 1;
    arguments_.range[0] = {lists.interior_rows(), lists.rows()};
    launch(runtime::Part::boundary, boundary_both_sides_);
    if (lost_) return;
    arguments_.ranges = static_cast<std::int32_t>(rest_.size());
    std::copy(rest_.begin(), rest_.end(), arguments_.range);
    launch(runtime::Part::last, interior_both_sides_);
}

template <typename Real>
const Real* KernelDevice<Real>::ghost_forces(bool wait) {
    if (lost_) return nullptr;
    if (!wait && runner_->running(parts_[1])) return nullptr;
    lost_ = !runner_->settle(parts_[1]);
    return lost_ ? nullptr : static_cast<const Real*>(f_.data());
}

template <typename Real>
std::optional<typename Device<Real>::Outcome> KernelDevice<Real>::finish() {
    if (lost_) return std::nullopt;
    const std::size_t parts = parts_[2] != 0 ? 3 : 1;
    way_.asked(runner_->running(parts_[parts - 1]));
    // Forces computed from the wrong lists would be wrong, so this also checks that the device has kept the
    // lists.
    for (KernelRunner::Ticket& part : parts_)
        if (!runner_->settle(part)) lost_ = true;
    if (!lists_[in_use_].kept()) lost_ = true;
    if (lost_) return std::nullopt;
    typename Device<Real>::Outcome outcome;
    double began = 0.0, ended = 0.0;
    for (std::size_t part = 0; part < parts; ++part) {
        runtime::ForceAnswer answer;
        std::memcpy(&answer, static_cast<const runtime::ForceAnswer*>(answers_.data()) + part, sizeof answer);
        outcome.sum += answer.sum;
        outcome.seconds += answer.end - answer.begin;
        if (part == 0) began = answer.begin;
        ended = answer.end;
    }
    way_.done(began, ended);
    outcome.busy = std::max(outcome.seconds, ended - began) + way_.seconds();
    outcome.forces = {static_cast<const Real*>(f_.data()) + first_real_, own_reals_ - first_real_};
    outcome.first = first_real_;
    return outcome;
}

template class KernelDevice<float>;
template class KernelDevice<double>;

}  // namespace minimd
