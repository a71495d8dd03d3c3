#include "minimd/offpath/runtime_eam_device.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace minimd {

namespace {

// The attachment's kernels.
constexpr std::size_t keep_lists = 0, keep_table = 1, compute_densities = 2, compute_forces = 3;

// A step's, by number.
constexpr std::size_t interior_densities = 0, boundary_densities = 1, all_forces = 2;

}  // namespace

template <typename Real>
RuntimeEamDevice<Real>::RuntimeEamDevice(MPI_Comm comm, const RuntimeSettings& settings,
                                         const EamTable<Real>& table)
    : attachment_(comm, {sizeof(Real), settings.lanes},
                  {runtime::lists_symbol, runtime::eam_table_symbol, runtime::eam_densities_symbol,
                   runtime::eam_forces_symbol}),
      x_(attachment_.context()),
      density_(attachment_.context()),
      derivative_(attachment_.context()),
      f_(attachment_.context()),
      answers_(attachment_.context()),
      lists_(attachment_.context()) {
    arguments_.numbers = {sizeof(Real), settings.lanes};
    arguments_.threads = settings.threads;
    arguments_.slowness = settings.slowness;
    lost_ = !answers_.reserve(parts_.size() * sizeof(runtime::ForceAnswer)) || !send_table(table);
    in_place_ = !lost_ && answers_.in_place();
}

template <typename Real>
RuntimeEamDevice<Real>::~RuntimeEamDevice() {
    for (offpath_request_h& part : parts_)
        settle(part);
}

template <typename Real>
bool RuntimeEamDevice<Real>::send_table(const EamTable<Real>& table) {
    const runtime::EamTableArguments arguments{arguments_.numbers, table.last_row, 0,
                                               static_cast<double>(table.per_spacing),
                                               static_cast<double>(table.cutoff)};
    const std::size_t numbers = (static_cast<std::size_t>(table.last_row) + 1) * EamTable<Real>::row_size;
    const offpath_kernel_buffer_t rows{const_cast<Real*>(table.rows), numbers * sizeof(Real), OFFPATH_IN};
    offpath_request_h request = nullptr;
    return offpath_compute(attachment_.kernel(keep_table), &arguments, sizeof arguments, &rows, 1,
                           &request) == OFFPATH_OK &&
           settle(request);
}

template <typename Real>
bool RuntimeEamDevice<Real>::reserve(const Particles<Real>& particles) {
    const auto slots = static_cast<std::size_t>(particles.slots);
    return x_.reserve(3 * slots * sizeof(Real)) && density_.reserve(slots * sizeof(Real)) &&
           derivative_.reserve(slots * sizeof(Real)) && f_.reserve(3 * slots * sizeof(Real));
}

template <typename Real>
void RuntimeEamDevice<Real>::set_lists(const Particles<Real>&, Neighborhood<Real>& neighborhood) {
    if (lost_ || !lists_.fill(neighborhood.lists())) {
        lost_ = true;
        return;
    }
    arguments_.interior_both_sides = neighborhood.both_sides(false) ? 1 : 0;
    arguments_.boundary_both_sides = neighborhood.both_sides(true) ? 1 : 0;
    if (!in_place_) lost_ = !lists_.send(attachment_.kernel(keep_lists));
}

template <typename Real>
void RuntimeEamDevice<Real>::launch(std::size_t part,
                                    std::initializer_list<offpath_kernel_buffer_t> buffers) {
    std::vector<offpath_kernel_buffer_t> all{{static_cast<runtime::ForceAnswer*>(answers_.data()) + part,
                                              sizeof(runtime::ForceAnswer), OFFPATH_OUT}};
    all.insert(all.end(), buffers.begin(), buffers.end());
    const offpath_kernel_h kernel =
        attachment_.kernel(part == all_forces ? compute_forces : compute_densities);
    lost_ = offpath_compute(kernel, &arguments_, sizeof arguments_, all.data(), all.size(), &parts_[part]) !=
            OFFPATH_OK;
}

template <typename Real>
offpath_kernel_buffer_t RuntimeEamDevice<Real>::some(const RuntimeMemory& memory, std::size_t first,
                                                     std::size_t end, offpath_access_t access) const {
    return {static_cast<Real*>(memory.data()) + first, (end - first) * sizeof(Real), access};
}

template <typename Real>
void RuntimeEamDevice<Real>::start(const Particles<Real>& particles, const Share& share) {
    started_ = Clock::now();
    if (lost_ || !reserve(particles)) {
        lost_ = true;
        return;
    }
    const std::size_t own = particles.reals(particles.local_slots), all = particles.reals(particles.slots);
    std::memcpy(x_.data(), particles.x.data(), own * sizeof(Real));
    arguments_.own_slots = particles.local_slots;
    arguments_.slots = particles.slots;
    arguments_.interior_rows = lists_.interior_rows();
    arguments_.rows = lists_.rows();
    arguments_.energy = share.energy ? 1 : 0;
    arguments_.boundary = 0;
    if (in_place_) {
        launch(interior_densities, {some(x_, 0, all, OFFPATH_IN), some(density_, 0, all / 3, OFFPATH_INOUT),
                                    lists_.row_buffer(), lists_.block_buffer()});
    } else {
        launch(interior_densities, {some(x_, 0, own, OFFPATH_IN)});
    }
}

template <typename Real>
void RuntimeEamDevice<Real>::take_ghosts(const Particles<Real>& particles) {
    if (lost_) return;
    const std::size_t own = particles.reals(particles.local_slots), all = particles.reals(particles.slots);
    std::memcpy(static_cast<Real*>(x_.data()) + own, particles.x.data() + own, (all - own) * sizeof(Real));
    arguments_.boundary = 1;
    if (in_place_) {
        launch(boundary_densities, {some(x_, 0, all, OFFPATH_IN), some(density_, 0, all / 3, OFFPATH_INOUT),
                                    lists_.row_buffer(), lists_.block_buffer()});
    } else {
        launch(boundary_densities,
               {some(x_, own, all, OFFPATH_IN),
                some(density_, 0, static_cast<std::size_t>(arguments_.given()), OFFPATH_OUT)});
    }
}

template <typename Real>
Real* RuntimeEamDevice<Real>::densities() {
    if (lost_) return nullptr;
    // Numbers from other lists than those that were meant would be wrong, so these are asked as well.
    for (const std::size_t part : {interior_densities, boundary_densities})
        if (!settle(parts_[part])) lost_ = true;
    if (!lists_.kept()) lost_ = true;
    return lost_ ? nullptr : static_cast<Real*>(density_.data());
}

template <typename Real>
void RuntimeEamDevice<Real>::take_derivatives(std::span<const Real> derivatives) {
    if (lost_) return;
    std::memcpy(derivative_.data(), derivatives.data(), derivatives.size_bytes());
    const std::size_t slots = derivatives.size(), given = static_cast<std::size_t>(arguments_.given());
    if (in_place_) {
        launch(all_forces, {some(x_, 0, 3 * slots, OFFPATH_IN), some(derivative_, 0, slots, OFFPATH_IN),
                            some(f_, 0, 3 * slots, OFFPATH_INOUT)});
    } else {
        launch(all_forces, {some(derivative_, 0, slots, OFFPATH_IN), some(f_, 0, 3 * given, OFFPATH_OUT)});
    }
}

template <typename Real>
const Real* RuntimeEamDevice<Real>::ghost_forces(bool wait) {
    if (lost_) return nullptr;
    if (!wait && parts_[all_forces] != nullptr &&
        offpath_request_test(parts_[all_forces]) == OFFPATH_IN_PROGRESS)
        return nullptr;
    lost_ = !settle(parts_[all_forces]);
    return lost_ ? nullptr : static_cast<const Real*>(f_.data());
}

template <typename Real>
std::optional<typename Device<Real>::Outcome> RuntimeEamDevice<Real>::finish() {
    if (ghost_forces(true) == nullptr) return std::nullopt;
    typename Device<Real>::Outcome outcome;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
        runtime::ForceAnswer answer;
        std::memcpy(&answer, static_cast<const runtime::ForceAnswer*>(answers_.data()) + part, sizeof answer);
        outcome.sum += answer.sum;
        outcome.seconds += answer.end - answer.begin;
    }
    outcome.busy = std::max(outcome.seconds, std::chrono::duration<double>(Clock::now() - started_).count());
    outcome.forces = {static_cast<const Real*>(f_.data()),
                      3 * static_cast<std::size_t>(arguments_.own_slots)};
    return outcome;
}

template class RuntimeEamDevice<float>;
template class RuntimeEamDevice<double>;

}  // namespace minimd
