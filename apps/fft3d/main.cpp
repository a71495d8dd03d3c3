// fft3d: forward and inverse 3-D Fourier transforms of several variables on a 2-D pencil decomposition. The
// MPI_Ialltoallv of one variable overlaps with the local transforms of the others. A plain MPI program.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command_line/command_line.h"
#include "fft3d/fields.h"
#include "fft3d/pipeline.h"
#include "fft3d/workload.h"
#include "support/mpi_program.h"
#include "support/output_file.h"

namespace fft3d {

namespace {

using mpi_support::UsageError;
using mpi_support::World;

constexpr double kTolerance = 1e-12;

struct Options {
    std::string n = "192";
    std::string problem = "transform";
    std::string grid;
    std::string json;
    std::string planner = "measure";
    int variables = 4;
    int iterations = 5;
    int warmup = 1;
    int in_flight = 0;
    bool no_overlap = false;
    bool verify = true;
    mpi_support::Allocator allocator = mpi_support::Allocator::kMalloc;
};

void declare(cli::App& app, Options& options) {
    app.add_option("--n", options.n, "Grid points: N for a cube, or NXxNYxNZ; need not divide evenly")
        ->capture_default_str();
    app.add_option(
           "--problem", options.problem,
           "transform: forward and back again. schroedinger: in between, one time step of the nonlinear "
           "Schroedinger equation for each variable, a wave function (split-step Fourier)")
        ->check(cli::IsMember({"transform", "schroedinger"}))
        ->capture_default_str();
    app.add_option("--variables", options.variables, "Variables transformed in each iteration")
        ->check(cli::Range(1, 1024))
        ->capture_default_str();
    app.add_option("--iterations", options.iterations,
                   "Timed iterations, each forward and back; medians are reported")
        ->check(cli::Range(1, 1000000))
        ->capture_default_str();
    app.add_option("--warmup", options.warmup, "Untimed iterations before those")
        ->check(cli::Range(0, 1000000))
        ->capture_default_str();
    app.add_option("--grid", options.grid, "Ranks as PxQ; 1xQ gives slabs (default: MPI_Dims_create)");
    app.add_option("--in-flight", options.in_flight,
                   "Variables whose exchanges may be on the wire at once (default: up to four)")
        ->check(cli::Range(1, 1024));
    app.add_flag("--no-overlap", options.no_overlap,
                 "Blocking form: MPI_Alltoallv, one variable after the other");
    app.add_option("--planner", options.planner,
                   "How long FFTW searches for plans: estimate, measure or patient")
        ->check(cli::IsMember({"estimate", "measure", "patient"}))
        ->capture_default_str();
    app.add_flag("--verify,!--no-verify", options.verify,
                 "Check spectra, round trips and solutions to 1e-12; a failure is exit code 1 (default: on)");
    app.add_option("--json", options.json,
                   "Write the results to this file as one JSON line; - prints that instead of the summary")
        ->check(mpi_support::output_file());
    mpi_support::add_allocator_option(app, options.allocator);
}

// Parses "4x5x6" as three numbers. With `allow_one`, one number stands for all.
template <std::size_t Count>
std::array<int, Count> parse_sizes(const std::string& option, const std::string& text, bool allow_one) {
    const auto wrong = [&] {
        return UsageError(option + " " + text + ": expected " + (allow_one ? "N or " : "") +
                          (Count == 3 ? "NXxNYxNZ" : "PxQ") + " with positive integers, for example " +
                          (Count == 3 ? "192 or 128x96x64" : "2x2"));
    };
    std::vector<int> sizes;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, 'x');) {
        if (part.empty() || part.size() > 9 || part.find_first_not_of("0123456789") != std::string::npos)
            throw wrong();
        sizes.push_back(std::stoi(part));
        if (sizes.back() < 1) throw wrong();
    }
    if (allow_one && sizes.size() == 1) sizes.resize(Count, sizes[0]);
    if (sizes.size() != Count) throw wrong();
    std::array<int, Count> result{};
    std::copy(sizes.begin(), sizes.end(), result.begin());
    return result;
}

std::array<int, 2> choose_grid(const Options& options, const World& world) {
    std::array<int, 2> grid{0, 0};
    if (options.grid.empty()) {
        MPI_Dims_create(world.ranks, 2, grid.data());
        return grid;
    }
    grid = parse_sizes<2>("--grid", options.grid, false);
    if (static_cast<long>(grid[0]) * grid[1] != world.ranks)
        throw UsageError("--grid " + options.grid + " needs " +
                         std::to_string(static_cast<long>(grid[0]) * grid[1]) + " ranks, but the job has " +
                         std::to_string(world.ranks));
    return grid;
}

unsigned planner_flag(const std::string& name) {
    if (name == "estimate") return FFTW_ESTIMATE;
    return name == "patient" ? FFTW_PATIENT : FFTW_MEASURE;
}

struct Check {
    double spectrum_error = 0;
    double field_error = 0;

    bool passed() const { return spectrum_error <= kTolerance && field_error <= kTolerance; }
};

Check check_plane_waves(const Decomposition& decomposition, Pipeline& pipeline,
                        std::vector<Variable>& variables) {
    for (std::size_t v = 0; v < variables.size(); ++v)
        fill_plane_waves(decomposition, static_cast<int>(v), variables[v].field);
    pipeline.run(variables, nullptr);
    Check check;
    for (std::size_t v = 0; v < variables.size(); ++v) {
        const int index = static_cast<int>(v);
        check.spectrum_error = std::max(
            check.spectrum_error, plane_wave_spectrum_error(decomposition, index, variables[v].spectrum));
        check.field_error =
            std::max(check.field_error, plane_wave_field_error(decomposition, index, variables[v].field));
    }
    return check;
}

Timings time_iterations(const Options& options, Pipeline& pipeline, const PointwiseStep* step,
                        std::vector<Variable>& variables) {
    std::vector<double> total, comm, compute;
    for (int iteration = -options.warmup; iteration < options.iterations; ++iteration) {
        MPI_Barrier(MPI_COMM_WORLD);
        const Timings mine = pipeline.run(variables, step);
        if (iteration < 0) continue;
        total.push_back(mine.total_s);
        comm.push_back(mine.comm_s);
        compute.push_back(mine.compute_s);
    }
    return {mpi_support::median(mpi_support::max_over_ranks(total)),
            mpi_support::median(mpi_support::max_over_ranks(comm)),
            mpi_support::median(mpi_support::max_over_ranks(compute))};
}

void report(const Options& options, const World& world, const Decomposition& decomposition, int in_flight,
            const Timings& times, const Check& check) {
    const auto [nx, ny, nz] = decomposition.n();
    if (!options.json.empty()) {
        mpi_support::write_json_line({{"program", "fft3d"},
                                      {"problem", options.problem},
                                      {"n", decomposition.n()},
                                      {"variables", options.variables},
                                      {"ranks", world.ranks},
                                      {"grid", decomposition.grid()},
                                      {"in_flight", in_flight},
                                      {"iterations", options.iterations},
                                      {"total_s", times.total_s},
                                      {"comm_s", times.comm_s},
                                      {"compute_s", times.compute_s},
                                      {"spectrum_error", check.spectrum_error},
                                      {"field_error", check.field_error},
                                      {"verified", options.verify && check.passed()}},
                                     options.json);
    }
    if (options.json == "-") return;
    std::printf("fft3d: %d x %d x %d points, %d variables, %d ranks as %d x %d, ", nx, ny, nz,
                options.variables, world.ranks, decomposition.grid()[0], decomposition.grid()[1]);
    if (in_flight == 0) {
        std::printf("blocking exchanges\n");
    } else {
        std::printf("%d exchanges in flight\n", in_flight);
    }
    std::printf("  per iteration (forward and back): %.4f s, of it in MPI %.4f s, computing %.4f s\n",
                times.total_s, times.comm_s, times.compute_s);
    if (options.verify)
        std::printf("  verification %s: spectrum error %.1e, field error %.1e (tolerance %.0e)\n",
                    check.passed() ? "passed" : "FAILED", check.spectrum_error, check.field_error,
                    kTolerance);
}

int run(const Options& options, const World& world) {
    const Decomposition decomposition(MPI_COMM_WORLD, parse_sizes<3>("--n", options.n, true),
                                      choose_grid(options, world));
    PencilFft fft(decomposition, planner_flag(options.planner));
    int in_flight =
        options.in_flight > 0 ? options.in_flight : Pipeline::default_in_flight(options.variables);
    in_flight = options.no_overlap ? 0 : std::min(in_flight, options.variables);
    Pipeline pipeline(decomposition, fft, in_flight, options.allocator);
    std::vector<Variable> variables;
    for (int v = 0; v < options.variables; ++v)
        variables.push_back({Array(decomposition.field_size()), Array(decomposition.spectrum_size())});

    Check check;
    if (options.verify) check = check_plane_waves(decomposition, pipeline, variables);
    const Workload workload(options.problem, decomposition);
    for (int v = 0; v < options.variables; ++v)
        workload.fill(v, variables[v].field);
    const Timings times = time_iterations(options, pipeline, workload.step(), variables);
    if (options.verify) {
        for (int v = 0; v < options.variables; ++v)
            check.field_error =
                std::max(check.field_error,
                         workload.error(v, options.warmup + options.iterations, variables[v].field));
        check.spectrum_error = mpi_support::max_over_ranks(check.spectrum_error);
        check.field_error = mpi_support::max_over_ranks(check.field_error);
    }
    if (world.rank == 0) report(options, world, decomposition, in_flight, times, check);
    return check.passed() ? 0 : 1;
}

}  // namespace

}  // namespace fft3d

int main(int argc, char** argv) {
    cli::App app("Distributed 3-D FFT of several variables: pencils, MPI_Ialltoallv under local transforms.",
                 "fft3d");
    fft3d::Options options;
    fft3d::declare(app, options);
    return mpi_support::run_mpi_program(
        argc, argv, app, [&](const mpi_support::World& world) { return fft3d::run(options, world); });
}
