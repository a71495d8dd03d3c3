// ring-hpl: the communication pattern of the HPL benchmark. Owners factor panels, which travel around a ring
// of ranks while the ranks update the trailing matrix. The program then solves the system and checks its
// residual.
#include <cblas.h>

#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "command_line/command_line.h"
#include "ring-hpl/factorize.h"
#include "support/mpi_program.h"
#include "support/output_file.h"

namespace ring_hpl {

namespace {

using mpi_support::UsageError;
using mpi_support::World;

constexpr double kLargestResidual = 16.0;  // HPL's threshold

struct Options {
    std::string variant = "mpi-ring";
    std::string json;
    int n = 4096;
    int nb = 128;
    int chunk = -1;
    int iterations = 1;
    std::uint64_t segment = 512 << 10;
    mpi_support::Allocator allocator = mpi_support::Allocator::kMalloc;
};

void declare(cli::App& app, Options& options) {
    app.add_option(
           "--variant", options.variant,
           "Panel broadcast: mpi-ring (MPI_Isend, MPI_Irecv and MPI_Test by the hosts, as HPL's 1ring), "
           "mpi-ibcast (MPI_Ibcast), or group (group primitives of offpath; needs a running offpathd)")
        ->check(cli::IsMember({"mpi-ring", "mpi-ibcast", "group"}))
        ->capture_default_str();
    app.add_option_function(
           "--bcast", [&options](const std::string& name) { options.variant = "mpi-" + name; },
           "Short for --variant mpi-ring or mpi-ibcast")
        ->check(cli::IsMember({"ring", "ibcast"}));
    app.add_option("--n", options.n, "Order of the system")
        ->check(cli::Range(1, 1000000))
        ->capture_default_str();
    app.add_option("--nb", options.nb, "Columns in a panel")
        ->check(cli::Range(1, 8192))
        ->capture_default_str();
    app.add_option(
           "--chunk", options.chunk,
           "Columns updated between two tests of the broadcast; 0: none (default: a panel's width for "
           "mpi-ring, else 0)")
        ->check(cli::Range(0, 1000000));
    app.add_option("--segment", options.segment, "Bytes passed on at a time in the group variant")
        ->transform(cli::AsSizeValue())
        ->check(cli::Range(std::uint64_t{1} << 10, std::uint64_t{1} << 40))
        ->capture_default_str();
    app.add_option("--iterations", options.iterations, "Times to solve the system; the median is reported")
        ->check(cli::Range(1, 100000))
        ->capture_default_str();
    app.add_option("--json", options.json,
                   "Write the results to this file as one JSON line; - prints that instead of the summary")
        ->check(mpi_support::output_file());
    mpi_support::add_allocator_option(app, options.allocator);
}

std::unique_ptr<PanelBroadcast> make_broadcast(const Options& options, const Shape& shape) {
    if (panel_doubles(shape, 0) > static_cast<std::size_t>(std::numeric_limits<int>::max()))
        throw UsageError("a panel of --n times --nb has more than 2^31-1 numbers: make one of them smaller");
    if (options.variant == "mpi-ring") return make_ring_broadcast(shape, options.allocator);
    if (options.variant == "mpi-ibcast") return make_ibcast_broadcast(shape, options.allocator);
    return make_group_broadcast(shape, options.segment);
}

// Returns, for each time, the median over the runs of the slowest rank's time.
Timings summarise(const std::vector<Timings>& runs) {
    const auto median_of = [&](double Timings::*member) {
        std::vector<double> values;
        for (const Timings& run : runs)
            values.push_back(run.*member);
        return mpi_support::median(mpi_support::max_over_ranks(values));
    };
    return {median_of(&Timings::total_s), median_of(&Timings::panel_s), median_of(&Timings::bcast_s),
            median_of(&Timings::update_s)};
}

void report(const Options& options, const World& world, const Timings& times, double residual) {
    const double n = options.n;
    const double gflops = (2.0 / 3.0 * n * n * n + 1.5 * n * n) / times.total_s * 1e-9;
    const bool verified = residual < kLargestResidual;
    if (!options.json.empty()) {
        mpi_support::write_json_line({{"program", "ring-hpl"},
                                      {"variant", options.variant},
                                      {"n", options.n},
                                      {"nb", options.nb},
                                      {"ranks", world.ranks},
                                      {"total_s", times.total_s},
                                      {"bcast_s", times.bcast_s},
                                      {"update_s", times.update_s},
                                      {"panel_s", times.panel_s},
                                      {"gflops", gflops},
                                      {"residual", residual},
                                      {"verified", verified}},
                                     options.json);
    }
    if (options.json == "-") return;
    std::printf("ring-hpl: order %d, panels of %d columns, %d ranks, %s\n", options.n, options.nb,
                world.ranks, options.variant.c_str());
    std::printf("  %.4f s, %.2f Gflop/s; slowest rank: panels %.4f s, broadcast %.4f s, update %.4f s\n",
                times.total_s, gflops, times.panel_s, times.bcast_s, times.update_s);
    std::printf("  verification %s: scaled residual %.4f (below %.0f is right)\n",
                verified ? "passed" : "FAILED", residual, kLargestResidual);
}

int run(const Options& options, const World& world) {
    openblas_set_num_threads(1);
    const Shape shape{options.n, std::min(options.nb, options.n), world.rank, world.ranks};
    const std::unique_ptr<PanelBroadcast> broadcast = make_broadcast(options, shape);
    const int chunk = options.chunk >= 0 ? options.chunk : options.variant == "mpi-ring" ? shape.nb : 0;
    Factorization factorization(shape, *broadcast, chunk);
    std::vector<Timings> runs;
    double residual = 0;
    for (int i = 0; i < options.iterations; ++i) {
        std::vector<double> x;
        runs.push_back(factorization.run(x));
        residual = std::max(residual, scaled_residual(shape, x));
    }
    const Timings times = summarise(runs);
    if (world.rank == 0) report(options, world, times, residual);
    return residual < kLargestResidual ? 0 : 1;
}

}  // namespace

}  // namespace ring_hpl

int main(int argc, char** argv) {
    cli::App app("The HPL pattern: LU factorisation with the panel broadcast under the trailing update.",
                 "ring-hpl");
    ring_hpl::Options options;
    ring_hpl::declare(app, options);
    return mpi_support::run_mpi_program(
        argc, argv, app, [&](const mpi_support::World& world) { return ring_hpl::run(options, world); });
}
