// Where the loops over pairs lie below one core's limits. The program takes minimd's flags and simulates the
// system for their number of steps. Then it counts the lists and times the loops alone. It runs on one rank.
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "command_line/command_line.h"
#include "minimd/domain/decomposition.h"
#include "minimd/dynamics/eam_forces.h"
#include "minimd/dynamics/neighborhood.h"
#include "minimd/dynamics/simulation.h"
#include "minimd/report/outputs.h"
#include "minimd/roofline/counts.h"
#include "minimd/roofline/peaks.h"
#include "minimd/setup/command_line.h"
#include "minimd/setup/eam_file.h"
#include "minimd/setup/feasible.h"
#include "minimd/setup/system_source.h"
#include "support/mpi_program.h"

namespace {

using namespace minimd;
using nlohmann::ordered_json;

// Returns the seconds of the fastest of several calls; the others were disturbed.
template <typename Call>
double fastest(Call&& call) {
    using Clock = std::chrono::steady_clock;
    double best = 1e30, all = 0.0;
    for (int trial = 0; trial < 100 && (trial < 5 || all < 1.0); ++trial) {
        const Clock::time_point start = Clock::now();
        call();
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        best = std::min(best, seconds);
        all += seconds;
    }
    return best;
}

template <typename Real>
class Roofline {
  public:
    Roofline(const Settings& settings, const Decomposition& decomposition, const System& system,
             const AtomList& atoms)
        : settings_(settings),
          kernels_(kernels<Real>(settings.lanes)),
          neighborhood_(settings, decomposition, kernels_, system.density),
          particles_(in_slots<Real>({kernels_.lanes}, atoms)) {
        Times ignored;
        neighborhood_.rebuild(particles_, 0, ignored);
        particles_.f.resize(particles_.reals(particles_.slots));
    }

    ordered_json loops(const EamTables* tables) {
        ordered_json rows = ordered_json::array();
        if (tables == nullptr) {
            rows.push_back(lennard_jones());
        } else {
            for (ordered_json& row : embedded_atom(*tables))
                rows.push_back(std::move(row));
        }
        return rows;
    }

    ordered_json peaks() const {
        ordered_json peaks = {{"flops_per_s", peak_flops<Real>(kernels_.lanes)}};
        ordered_json memory = ordered_json::array();
        for (const auto& [level, bytes] : {std::pair<const char*, std::size_t>{"16 KiB", 16 << 10},
                                           {"512 KiB", 512 << 10},
                                           {"8 MiB", 8 << 20},
                                           {"512 MiB", std::size_t{512} << 20}})
            memory.push_back({{"arrays", level},
                              {"bytes", bytes},
                              {"bytes_per_s", peak_bytes<Real>(kernels_.lanes, bytes)}});
        peaks["memory"] = memory;
        return peaks;
    }

  private:
    std::size_t slots() const { return static_cast<std::size_t>(particles_.slots); }

    // Calls call(list, both_sides) for the interior pairs and for the pairs with ghosts.
    template <typename Call>
    void over_lists(Call&& call) {
        const PairLists& lists = neighborhood_.lists()[0];
        call(lists.interior, neighborhood_.both_sides(false));
        call(lists.boundary, neighborhood_.both_sides(true));
    }

    ListCounts count(double cutoff) {
        ListCounts all;
        over_lists([&](const PairList& list, bool both_sides) {
            const ListCounts one = count_pairs(particles_, list.view(), cutoff, both_sides);
            all.rows += one.rows;
            all.blocks += one.blocks;
            all.tested += one.tested;
            all.in_range += one.in_range;
        });
        return all;
    }

    ordered_json row(const char* loop, const ListCounts& pairs, const LoopCounts& counts,
                     double seconds) const {
        const auto atoms = static_cast<double>(particles_.atoms);
        return {{"loop", loop},
                {"lanes", kernels_.lanes},
                {"tested_pairs_per_atom", pairs.tested / atoms},
                {"pairs_per_atom", pairs.in_range / atoms},
                {"flops_per_atom", counts.flops / atoms},
                {"moved_bytes_per_atom", counts.moved / atoms},
                {"least_bytes_per_atom", counts.least / atoms},
                {"ns_per_atom", seconds * 1e9 / atoms},
                {"flops_per_s", counts.flops / seconds},
                {"moved_bytes_per_s", counts.moved / seconds},
                {"flops_per_moved_byte", counts.flops / counts.moved},
                {"flops_per_least_byte", counts.flops / counts.least}};
    }

    ordered_json lennard_jones() {
        const LjParameters parameters{settings_.cutoff, settings_.epsilon, settings_.sigma,
                                      settings_.intensity};
        const double seconds = fastest([&] {
            over_lists([&](const PairList& list, bool both_sides) {
                kernels_.lennard_jones(particles_.x.data(), particles_.f.data(), list.view(), parameters,
                                       {false, both_sides});
            });
        });
        const ListCounts pairs = count(settings_.cutoff);
        return row("lj", pairs, count_lennard_jones<Real>(pairs, kernels_.lanes, slots()), seconds);
    }

    std::vector<ordered_json> embedded_atom(const EamTables& tables) {
        constexpr std::size_t rows_at_once = 64;
        const EamForces<Real> forces(settings_, kernels_, tables);
        const EamKernels<Real> kernel = eam_kernels<Real>(kernels_.lanes);
        AlignedVector<Real> density(slots()), derivative(slots());
        std::fill(density.begin(), density.end(), Real{0});
        std::fill(derivative.begin(), derivative.end(), Real(-0.1));
        EamPairStore<Real> store;
        // One store can keep the pairs of both lists: with half lists and ghost newton, both are listed from
        // one side, so all pairs are alike.
        const double first = fastest([&] {
            store.clear();
            over_lists([&](const PairList& list, bool both_sides) {
                for (std::size_t at = 0; at < list.rows.size(); at += rows_at_once) {
                    const PairRows rows = list.view(at, std::min(rows_at_once, list.rows.size() - at));
                    kernel.density(particles_.x.data(), density.data(), rows, forces.table(),
                                   {false, both_sides}, store.room_for(rows, kernels_.lanes));
                }
            });
        });
        const double second = fastest([&] {
            kernel.force(particles_.x.data(), derivative.data(), particles_.f.data(), store.pairs(),
                         {false, true});
        });
        const ListCounts pairs = count(tables.cutoff);
        ListCounts found;
        found.tested = static_cast<double>(store.pairs().block_count) * cluster_size * kernels_.lanes;
        found.in_range = static_cast<double>(store.pairs().pair_count);
        return {row("eam densities", pairs, count_eam_density(pairs, store.pairs(), kernels_.lanes, slots()),
                    first),
                row("eam forces", found, count_eam_force(store.pairs(), kernels_.lanes, slots()), second)};
    }

    const Settings& settings_;
    const Kernels<Real>& kernels_;
    Neighborhood<Real> neighborhood_;
    Particles<Real> particles_;
};

template <typename Real>
ordered_json measure(const Settings& settings, const Decomposition& decomposition, const System& system,
                     const EamTables* tables) {
    AtomList atoms;
    {
        Simulation<Real> simulation(settings, decomposition, system, tables);
        simulation.run();
        atoms = simulation.atoms();
    }
    Roofline<Real> roofline(settings, decomposition, system, atoms);
    return {{"atoms", system.atoms},
            {"precision", sizeof(Real) == 8 ? "double" : "single"},
            {"potential", tables != nullptr ? "eam" : "lj"},
            {"peaks", roofline.peaks()},
            {"loops", roofline.loops(tables)}};
}

int run(const CommandLine& command_line, const mpi_support::World& world) {
    const Settings settings = command_line.settings(MPI_COMM_WORLD);
    if (world.ranks != 1 || settings.threads != 1 || settings.needs_device() ||
        settings.list_kind() != ListKind::half || !settings.ghost_newton)
        throw mpi_support::UsageError(
            "minimd-roofline is for one rank with one thread, half lists and -gn 1");
    check_outputs(settings, MPI_COMM_WORLD);
    std::optional<EamTables> tables;
    if (settings.potential == Potential::eam) tables = read_eam(settings.eam_file, MPI_COMM_WORLD);
    const EamTables* const eam = tables ? &*tables : nullptr;
    const std::unique_ptr<SystemSource> source =
        open_source(settings, MPI_COMM_WORLD, tables ? std::optional(tables->mass) : std::nullopt);
    const Decomposition decomposition(MPI_COMM_WORLD, source->box());
    check_feasible(settings, decomposition, static_cast<double>(source->atoms()));
    const System system = source->load(decomposition);
    const ordered_json found = settings.precision == Precision::single_precision
                                   ? measure<float>(settings, decomposition, system, eam)
                                   : measure<double>(settings, decomposition, system, eam);
    mpi_support::write_json_line(found, settings.json.value_or("-"));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    cli::App app("The loops over pairs of minimd beside what a core can do", "minimd-roofline");
    const CommandLine command_line(app);
    std::vector<char*> arguments = with_double_dashes(argc, argv);
    return mpi_support::run_mpi_program(
        static_cast<int>(arguments.size()) - 1, arguments.data(), app,
        [&](const mpi_support::World& world) { return run(command_line, world); });
}
