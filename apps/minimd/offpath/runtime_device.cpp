#include "minimd/offpath/runtime_device.h"

#include <algorithm>
#include <cstring>

namespace minimd {

namespace {

// The attachment's kernels.
constexpr std::size_t keep_lists = 0, compute_forces = 1;

}  // namespace

template <typename Real>
RuntimeDevice<Real>::RuntimeDevice(MPI_Comm comm, const RuntimeSettings& settings)
    : attachment_(comm, {sizeof(Real), settings.lanes}, {runtime::lists_symbol, runtime::forces_symbol}),
      x_(attachment_.context()),
      f_(attachment_.context()),
      answers_(attachment_.context()),
      lists_{RuntimeLists(attachment_.context()), RuntimeLists(attachment_.context())} {
    arguments_.numbers = {sizeof(Real), settings.lanes};
    arguments_.threads = settings.threads;
    arguments_.slowness = settings.slowness;
    arguments_.parameters = settings.parameters;
    lost_ = !answers_.reserve(parts_.size() * sizeof(runtime::ForceAnswer));
    in_place_ = !lost_ && answers_.in_place();
}

template <typename Real>
RuntimeDevice<Real>::~RuntimeDevice() {
    for (offpath_request_h& part : parts_)
        settle(part);
}

template <typename Real>
void RuntimeDevice<Real>::set_lists(const Particles<Real>& particles, Neighborhood<Real>& neighborhood) {
    RuntimeLists& lists = lists_[1 - latest_];
    if (lost_ || !lists.fill(neighborhood.lists())) {
        lost_ = true;
        return;
    }
    // What is allocated later asks the device in the middle of a step.
    RuntimeLists& next = lists_[latest_];
    const std::size_t bytes = particles.reals(particles.slots) * sizeof(Real);
    if (next.empty() && (!next.reserve_as(lists) || !x_.reserve(bytes) || !f_.reserve(bytes))) {
        lost_ = true;
        return;
    }
    latest_ = 1 - latest_;
    interior_both_sides_ = neighborhood.both_sides(false);
    boundary_both_sides_ = neighborhood.both_sides(true);
    if (!in_place_) lost_ = !lists.send(attachment_.kernel(keep_lists));
}

template <typename Real>
void RuntimeDevice<Real>::launch(runtime::Part part, bool both_sides) {
    using runtime::Part;
    const std::size_t number = begins(part) ? 0 : part == Part::boundary ? 1 : 2;
    arguments_.part = part;
    arguments_.both_sides = both_sides ? 1 : 0;
    std::vector<offpath_kernel_buffer_t> buffers{
        {static_cast<runtime::ForceAnswer*>(answers_.data()) + number, sizeof(runtime::ForceAnswer),
         OFFPATH_OUT}};
    if (in_place_) {
        const RuntimeLists& lists = lists_[in_use_];
        buffers.push_back(x_.buffer(reals_ * sizeof(Real), OFFPATH_IN));
        buffers.push_back(f_.buffer(reals_ * sizeof(Real), OFFPATH_INOUT));
        buffers.push_back(lists.row_buffer());
        buffers.push_back(lists.block_buffer());
    } else {
        const std::size_t first = part == Part::boundary ? own_reals_ : 0,
                          end = part == Part::boundary ? reals_ : own_reals_;
        const auto some = [&](const RuntimeMemory& memory, offpath_access_t access) {
            buffers.push_back(
                {static_cast<Real*>(memory.data()) + first, (end - first) * sizeof(Real), access});
        };
        if (part != Part::last) some(x_, OFFPATH_IN);
        if (part != Part::first) some(f_, OFFPATH_OUT);
    }
    lost_ = offpath_compute(attachment_.kernel(compute_forces), &arguments_, arguments_.bytes(),
                            buffers.data(), buffers.size(), &parts_[number]) != OFFPATH_OK;
}

template <typename Real>
void RuntimeDevice<Real>::start(const Particles<Real>& particles, const Share& share) {
    started_ = Clock::now();
    own_reals_ = particles.reals(particles.local_slots);
    reals_ = particles.reals(particles.slots);
    if (lost_ || !x_.reserve(reals_ * sizeof(Real)) || !f_.reserve(reals_ * sizeof(Real))) {
        lost_ = true;
        return;
    }
    std::memcpy(x_.data(), particles.x.data(), own_reals_ * sizeof(Real));
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
    launch(share.boundary ? runtime::Part::first : runtime::Part::whole, interior_both_sides_);
}

template <typename Real>
void RuntimeDevice<Real>::take_ghosts(const Particles<Real>& particles) {
    if (lost_) return;
    std::memcpy(static_cast<Real*>(x_.data()) + own_reals_, particles.x.data() + own_reals_,
                (reals_ - own_reals_) * sizeof(Real));
    const RuntimeLists& lists = lists_[in_use_];
    arguments_.ranges = 1;
    arguments_.range[0] = {lists.interior_rows(), lists.rows()};
    launch(runtime::Part::boundary, boundary_both_sides_);
    if (lost_) return;
    arguments_.ranges = static_cast<std::int32_t>(rest_.size());
    std::copy(rest_.begin(), rest_.end(), arguments_.range);
    launch(runtime::Part::last, interior_both_sides_);
}

template <typename Real>
const Real* RuntimeDevice<Real>::ghost_forces(bool wait) {
    if (lost_) return nullptr;
    if (!wait && parts_[1] != nullptr && offpath_request_test(parts_[1]) == OFFPATH_IN_PROGRESS)
        return nullptr;
    lost_ = !settle(parts_[1]);
    return lost_ ? nullptr : static_cast<const Real*>(f_.data());
}

template <typename Real>
std::optional<typename Device<Real>::Outcome> RuntimeDevice<Real>::finish() {
    if (lost_) return std::nullopt;
    const std::size_t parts = parts_[2] != nullptr ? 3 : 1;
    const bool waited = offpath_request_test(parts_[parts - 1]) == OFFPATH_IN_PROGRESS;
    // Forces from other lists than those that were meant would be wrong, so these are asked as well.
    for (offpath_request_h& part : parts_)
        if (!settle(part)) lost_ = true;
    if (!lists_[in_use_].kept()) lost_ = true;
    if (lost_) return std::nullopt;
    const double elapsed = std::chrono::duration<double>(Clock::now() - started_).count();
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
    // How long the way there and back took is known only if somebody waited. Else it is forgotten bit by bit,
    // so that one long way does not keep all later shares small.
    latency_ = waited ? std::max(0.0, elapsed - (ended - began)) : 0.9 * latency_;
    outcome.busy = std::max(outcome.seconds, ended - began) + latency_;
    outcome.forces = {static_cast<const Real*>(f_.data()), own_reals_};
    return outcome;
}

template class RuntimeDevice<float>;
template class RuntimeDevice<double>;

}  // namespace minimd
