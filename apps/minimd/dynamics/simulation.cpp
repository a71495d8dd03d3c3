#include "minimd/dynamics/simulation.h"

#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "minimd/base/stopwatch.h"
#include "minimd/dynamics/eam_forces.h"

namespace minimd {

namespace {

template <typename Real>
std::unique_ptr<Forces<Real>> forces_for(const Settings& settings, const Kernels<Real>& kernels,
                                         const EamTables* tables) {
    if (settings.potential == Potential::lj)
        return std::make_unique<LennardJonesForces<Real>>(settings, kernels);
    if (tables == nullptr) throw std::invalid_argument("the embedded-atom method needs tables");
    return std::make_unique<EamForces<Real>>(settings, kernels, *tables);
}

// Returns, on every rank, the text of the lowest rank that has one, or `otherwise` if none has. Collective.
std::string word_of_lowest_rank(const std::string& mine, const std::string& otherwise, MPI_Comm comm) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    int first = mine.empty() ? ranks : rank;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm);
    if (first == ranks) return otherwise;
    std::array<char, 256> text{};
    mine.copy(text.data(), text.size() - 1);
    MPI_Bcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, first, comm);
    return text.data();
}

}  // namespace

template <typename Real>
Simulation<Real>::Simulation(const Settings& settings, const Decomposition& decomposition,
                             const System& system, const EamTables* tables)
    : settings_(settings),
      decomposition_(decomposition),
      kernels_(kernels<Real>(settings.lanes)),
      atoms_(system.atoms),
      mass_(system.mass),
      scales_(settings.units, system.atoms, system.box[0] * system.box[1] * system.box[2]),
      kick_(static_cast<Real>(0.5 * settings.timestep * scales_.acceleration / system.mass)),
      particles_(in_slots<Real>({kernels_.lanes}, system.local)),
      neighborhood_(settings, decomposition, kernels_, system.density),
      forces_(forces_for<Real>(settings, kernels_, tables)),
      first_step_(system.step) {}

template <typename Real>
void Simulation<Real>::use(std::unique_ptr<StepPartner<Real>> partner) {
    partner_ = std::move(partner);
}

template <typename Real>
void Simulation<Real>::use(std::unique_ptr<HaloCarrier<Real>> carrier) {
    carrier_ = std::move(carrier);
    neighborhood_.halo().use(carrier_.get());
}

template <typename Real>
void Simulation<Real>::first_half() {
    const Real kick = kick_, dt = static_cast<Real>(settings_.timestep);
    Real* __restrict x = particles_.x.data();
    Real* __restrict v = particles_.v.data();
    const Real* __restrict f = particles_.f.data();
    const auto n = static_cast<std::ptrdiff_t>(particles_.reals(particles_.local_slots));
#pragma omp parallel for simd schedule(static) num_threads(settings_.threads) if (settings_.threads > 1)
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        v[i] += kick * f[i];
        x[i] += dt * v[i];
    }
}

template <typename Real>
void Simulation<Real>::second_half() {
    const Real kick = kick_;
    Real* __restrict v = particles_.v.data();
    const Real* __restrict f = particles_.f.data();
    const auto n = static_cast<std::ptrdiff_t>(particles_.reals(particles_.local_slots));
#pragma omp parallel for simd schedule(static) num_threads(settings_.threads) if (settings_.threads > 1)
    for (std::ptrdiff_t i = 0; i < n; ++i)
        v[i] += kick * f[i];
}

template <typename Real>
bool Simulation<Real>::energy_due(std::int64_t at) const {
    return at == first_step_ + settings_.steps ||
           (settings_.thermo_every > 0 && at % settings_.thermo_every == 0);
}

template <typename Real>
void Simulation<Real>::step(std::int64_t at) {
    first_half();
    const bool rebuild = at % settings_.reneighbor_every == 0;
    const bool energy = energy_due(at);
    if (rebuild && partner_ && partner_->rebuilds()) {
        potential_ = partner_->rebuild(particles_, neighborhood_, at, energy, results_.times);
    } else {
        if (rebuild) {
            neighborhood_.rebuild(particles_, at, results_.times);
            if (partner_) partner_->lists_changed(particles_, neighborhood_);
        }
        potential_ = partner_ ? partner_->ordinary(particles_, neighborhood_, rebuild, energy, results_.times)
                              : forces_->compute(particles_, neighborhood_, rebuild, energy, results_.times);
    }
    if (rebuild) check_skin(at);
    second_half();
    if (rebuild && partner_) partner_->rebuilt(MPI_Wtime() - began_, neighborhood_);
}

template <typename Real>
void Simulation<Real>::check_skin(std::int64_t at) {
    const auto excursion = neighborhood_.excursion();
    if (settings_.skin_check == SkinCheck::off || outrun_.distance > 0.0 ||
        excursion.distance <= 0.5 * settings_.skin)
        return;
    outrun_ = {excursion.distance, at, excursion.id};
    if (settings_.skin_check == SkinCheck::error)
        throw SimulationError(fmt::format(
            "step {}: atom {} moved {:.3g} since the last re-neighbouring, more than half the skin ({:.3f}), "
            "so "
            "that pairs can be missed: use a smaller interval than {} or a larger skin",
            at, excursion.id, excursion.distance, 0.5 * settings_.skin, settings_.reneighbor_every));
}

// Reports once for all ranks. The rank whose atom went furthest does so.
template <typename Real>
void Simulation<Real>::report_outrun() {
    if (settings_.skin_check != SkinCheck::warn || outrun_reported_) return;
    struct {
        double distance;
        int rank;
    } mine{outrun_.distance, decomposition_.rank()}, furthest{};
    MPI_Allreduce(&mine, &furthest, 1, MPI_DOUBLE_INT, MPI_MAXLOC, decomposition_.comm());
    if (furthest.distance <= 0.0) return;
    outrun_reported_ = true;
    if (furthest.rank != decomposition_.rank()) return;
    std::fprintf(
        stderr,
        "minimd: step %lld: atom %lld moved %.3g since the last re-neighbouring, more than half the "
        "skin (%.3f): pairs can be missed; a smaller interval than %d or a larger skin avoids that\n",
        static_cast<long long>(outrun_.step), static_cast<long long>(outrun_.atom), outrun_.distance,
        0.5 * settings_.skin, settings_.reneighbor_every);
}

template <typename Real>
void Simulation<Real>::after_step(std::int64_t at) {
    if (!on_step_) return;
    const double from = MPI_Wtime(), from_cpu = thread_cpu_seconds();
    on_step_(at);
    began_ += MPI_Wtime() - from;
    began_cpu_ += thread_cpu_seconds() - from_cpu;
}

template <typename Real>
double Simulation<Real>::calls() {
    return calls_.seconds() + neighborhood_.halo().calls() + neighborhood_.migration().calls() +
           (partner_ ? partner_->calls() : 0.0);
}

template <typename Real>
void Simulation<Real>::count() {
    Counts& counts = results_.counts;
    counts.atoms = particles_.atoms;
    counts.ghosts = static_cast<std::int64_t>(neighborhood_.halo().ghosts());
    counts.swapped = static_cast<std::int64_t>(neighborhood_.halo().bytes_per_update() / (3 * sizeof(Real)));
    for (const PairLists& lists : neighborhood_.lists())
        counts.pairs +=
            static_cast<std::int64_t>(lists.interior.blocks.size() + lists.boundary.blocks.size()) *
            cluster_size * kernels_.lanes;
    if (partner_) {
        results_.shared = partner_->shared_times();
        counts.shared_blocks = partner_->shared_blocks();
        counts.device_blocks = partner_->device_blocks();
    }
    counts.carried = static_cast<std::int64_t>(neighborhood_.halo().bytes_carried());
    results_.halo_kept = neighborhood_.halo().has_carrier();
}

template <typename Real>
std::string Simulation<Real>::bad_numbers(std::int64_t at) const {
    const auto lanes = static_cast<std::size_t>(particles_.layout.lanes);
    for (std::int32_t slot = 0; slot < particles_.local_slots; ++slot) {
        const std::size_t address = particles_.layout.address(slot);
        for (std::size_t d = 0; d < 3; ++d)
            if (!std::isfinite(particles_.f[address + d * lanes]) ||
                !std::isfinite(particles_.v[address + d * lanes]))
                return fmt::format(
                    "step {}: force or velocity of atom {} is not a number: atoms are too close or "
                    "the time step is too long",
                    at, particles_.id[static_cast<std::size_t>(slot)]);
    }
    return fmt::format("step {}: energy or temperature is not a number", at);
}

template <typename Real>
void Simulation<Real>::thermo(std::int64_t at) {
    const double mine[4] = {kinetic_sum(particles_, mass_), potential_.energy, potential_.virial,
                            double(particles_.atoms)};
    double all[4];
    Stopwatch watch;
    neighborhood_.halo().settle();
    calls_.in([&] { MPI_Allreduce(mine, all, 4, MPI_DOUBLE, MPI_SUM, decomposition_.comm()); });
    watch.lap(results_.times.communication);
    if (!std::isfinite(all[0] + all[1] + all[2]))
        throw CommonSimulationError(word_of_lowest_rank(
            std::isfinite(mine[0] + mine[1] + mine[2]) ? std::string() : bad_numbers(at),
            fmt::format("step {}: energy or temperature is not a number", at), decomposition_.comm()));
    if (static_cast<std::int64_t>(all[3]) != atoms_)
        throw CommonSimulationError(
            fmt::format("step {}: {} atoms of {} are left", at, static_cast<std::int64_t>(all[3]), atoms_));
    ThermoSums sums;
    sums.kinetic = all[0];
    sums.potential = {all[1], all[2]};
    ThermoRow row = thermo_row(scales_, sums, at, atoms_);
    row.seconds = at == first_step_ ? 0.0 : MPI_Wtime() - began_;
    results_.thermo.push_back(row);
    if (on_row_) on_row_(row);
    // Measured between rebuilds too, because the last rebuild may be long before the end.
    if (at % settings_.reneighbor_every != 0) {
        neighborhood_.measure_excursion(particles_);
        check_skin(at);
    }
    report_outrun();
}

template <typename Real>
Results Simulation<Real>::run() {
    results_ = {};
    results_.atoms = atoms_;
    results_.steps = settings_.steps;
    Times before;
    neighborhood_.rebuild(particles_, first_step_, before);
    if (partner_) {
        partner_->lists_changed(particles_, neighborhood_);
        partner_->calibrate(particles_, neighborhood_, before.neighbor.wall + before.communication.wall);
    }
    potential_ = forces_->compute(particles_, neighborhood_, true, true, before);
    thermo(first_step_);
    after_step(first_step_);

    MPI_Barrier(decomposition_.comm());
    results_.times = {};
    began_ = MPI_Wtime();
    began_cpu_ = thread_cpu_seconds();
    const double calls_before = calls();
    for (std::int64_t at = first_step_ + 1; at <= first_step_ + settings_.steps; ++at) {
        step(at);
        if (energy_due(at)) thermo(at);
        after_step(at);
    }
    Stopwatch watch;
    calls_.in([&] { MPI_Barrier(decomposition_.comm()); });
    watch.lap(results_.times.communication);
    results_.times.total = MPI_Wtime() - began_;
    results_.times.cpu = thread_cpu_seconds() - began_cpu_;
    results_.times.calls = calls() - calls_before;
    count();
    return results_;
}

template <typename Real>
AtomList Simulation<Real>::atoms() const {
    AtomList list;
    const auto lanes = static_cast<std::size_t>(particles_.layout.lanes);
    for (std::int32_t slot = 0; slot < particles_.local_slots; ++slot) {
        const auto s = static_cast<std::size_t>(slot);
        if (particles_.id[s] == 0) continue;
        const std::size_t at = particles_.layout.address(slot);
        Vec3 x, v;
        for (std::size_t d = 0; d < 3; ++d) {
            x[d] = static_cast<double>(particles_.x[at + d * lanes]);
            v[d] = static_cast<double>(particles_.v[at + d * lanes]);
        }
        list.id.push_back(particles_.id[s]);
        list.type.push_back(particles_.type[s]);
        list.x.push_back(x);
        list.v.push_back(v);
    }
    return list;
}

template class Simulation<float>;
template class Simulation<double>;

}  // namespace minimd
