#include "minimd/dynamics/neighborhood.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "minimd/base/stopwatch.h"

namespace minimd {

namespace {

template <typename Real>
typename PairSearch<Real>::Shell shell_for(const Settings& settings) {
    using Shell = typename PairSearch<Real>::Shell;
    if (settings.list_kind() == ListKind::full) return Shell::full;
    return settings.ghost_newton ? Shell::eighth : Shell::one_sided;
}

// Returns the side of a column that makes a block of `lanes` atoms about as wide as it is high. It is a
// little wider, because pairs are searched in columns.
double side_of_columns(int lanes, double density) {
    return std::cbrt(std::max(lanes, cluster_size) / density);
}

}  // namespace

template <typename Real>
Neighborhood<Real>::Neighborhood(const Settings& settings, const Decomposition& decomposition,
                                 const Kernels<Real>& kernels, double density)
    : settings_(settings),
      decomposition_(decomposition),
      shell_(shell_for<Real>(settings)),
      column_side_(side_of_columns(kernels.lanes, density)),
      migration_(decomposition),
      halo_(decomposition, settings.list_cutoff(), shell_, column_side_, settings.halo == HaloKind::blocking),
      search_(kernels),
      zones_(1),
      lists_(static_cast<std::size_t>(settings.threads)),
      old_lists_(static_cast<std::size_t>(settings.threads)) {}

template <typename Real>
std::unique_ptr<Halo<Real>> Neighborhood<Real>::new_halo() const {
    return std::make_unique<Halo<Real>>(decomposition_, settings_.list_cutoff(), shell_, column_side_,
                                        settings_.halo == HaloKind::blocking);
}

template <typename Real>
void Neighborhood<Real>::measure_excursion(const Particles<Real>& particles) {
    excursion_ = {};
    // Before the first build, or without atoms, there is nothing to measure.
    if (built_x_.empty() || built_x_.size() != particles.reals(particles.local_slots)) return;
    const auto lanes = static_cast<std::size_t>(particles.layout.lanes);
    const Real* __restrict now = particles.x.data();
    const Real* __restrict then = built_x_.data();
    Real furthest = 0;
    const std::size_t reals = built_x_.size();
    std::size_t where = 0;
    for (std::size_t block = 0; block < reals; block += 3 * lanes) {
        for (std::size_t i = block; i < block + lanes; ++i) {
            const Real dx = now[i] - then[i], dy = now[i + lanes] - then[i + lanes],
                       dz = now[i + 2 * lanes] - then[i + 2 * lanes];
            const Real distance2 = dx * dx + dy * dy + dz * dz;
            where = distance2 > furthest ? i : where;
            furthest = distance2 > furthest ? distance2 : furthest;
        }
    }
    const std::size_t slot = where / (3 * lanes) * lanes + where % (3 * lanes);
    excursion_ = {std::sqrt(static_cast<double>(furthest)), particles.id[slot]};
}

template <typename Real>
template <typename Find>
void Neighborhood<Real>::search(const Find& find) {
    const int parts = settings_.threads;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (parts > 1)
    for (int part = 0; part < parts; ++part)
        find(typename PairSearch<Real>::Task{shell_, settings_.list_cutoff(), part, parts},
             lists_[static_cast<std::size_t>(part)]);
}

template <typename Real>
void Neighborhood<Real>::rebuild(Particles<Real>& particles, std::int64_t step, Times& times,
                                 const Stages& stages) {
    Stopwatch watch;
    halo_.start_settle();
    migration_.start(particles, step);
    watch.lap(times.communication);
    measure_excursion(particles);
    watch.lap(times.neighbor);
    halo_.finish_settle();
    migration_.finish(halo_.has_carrier());
    if (stages.exchanged) stages.exchanged();
    watch.lap(times.communication);

    const Vec3 &lo = decomposition_.lo(), &hi = decomposition_.hi();
    const int bins = settings_.bins.value_or(0);
    zones_.resize(1);
    Zone<Real>& own = zones_[0];
    own.columns.set_up({lo[0], lo[1]}, {hi[0], hi[1]}, column_side_, {bins, bins});
    own.first_slot = 0;
    own.end_slot = own.columns.sort(particles.layout, 0, std::span<const Real>(migration_.x()),
                                    std::span<const Real>(migration_.y()),
                                    std::span<const Real>(migration_.z()), order_);
    migration_.settle(particles, order_);
    if (stages.settled) stages.settled();
    watch.lap(times.neighbor);

    // Pairs without ghosts are searched while the ghosts travel.
    halo_.start_build(particles);
    watch.lap(times.communication);
    built_x_.assign(particles.x.begin(), particles.x.begin() + static_cast<std::ptrdiff_t>(
                                                                   particles.reals(particles.local_slots)));
    lists_.swap(old_lists_);
    search_.enclose_own(particles);
    search([&](const auto& task, PairLists& lists) {
        search_.find_interior(particles, own, task, lists.interior);
    });
    watch.lap(times.neighbor);
    if (stages.searched) {
        stages.searched();
        watch = Stopwatch();
    }

    halo_.finish_build(particles, zones_);
    watch.lap(times.communication);
    search_.enclose_ghosts(particles);
    search([&](const auto& task, PairLists& lists) {
        search_.find_boundary(particles, zones_, task, lists.boundary);
    });
    for (const PairLists& each : lists_)
        if (each.interior.blocks.size() > std::numeric_limits<std::int32_t>::max() ||
            each.boundary.blocks.size() > std::numeric_limits<std::int32_t>::max())
            throw SimulationError(fmt::format(
                "step {}: the neighbour list of {} atoms does not fit into 2^31 entries: use more "
                "ranks or threads",
                step, particles.atoms));
    watch.lap(times.neighbor);
}

template class Neighborhood<float>;
template class Neighborhood<double>;

}  // namespace minimd
