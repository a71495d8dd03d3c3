// offpath-bench-programs: small programs of many kinds, which `offpath bench programs` runs with and without
// offload.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "command_line/command_line.h"
#include "patterns.h"
#include "support/output_file.h"

namespace programs {

const std::vector<Pattern>& patterns() {
    static const std::vector<Pattern> all = {
        {"stencil", "plane with a halo exchange by MPI_Sendrecv", 300, stencil},
        {"cg", "conjugate gradients: MPI_Allreduce of one number", 800, conjugate_gradient},
        {"ping-pong", "MPI_Send and MPI_Recv of 8 B to 1 MiB", 100, ping_pong},
        {"wavefront", "ranks that compute one after the other", 400, wavefront},
        {"transpose", "MPI_Alltoall of a matrix", 50, transpose},
        {"sort", "sample sort: MPI_Alltoallv of keys", 30, sample_sort},
        {"broadcast", "MPI_Bcast of 2 MiB and MPI_Gather", 40, broadcast_gather},
        {"compute", "no communication but one sum at the end", 8000, compute_only},
        {"tasks", "a manager that gives out tasks", 1000, tasks},
        {"particles", "MPI_Isend around a ring under all pairs", 30, particle_ring},
        {"start", "MPI_Init, MPI_Barrier, MPI_Finalize", 1, start_and_end},
    };
    return all;
}

namespace {

struct Options {
    std::string pattern;
    int steps = 0;
    std::string json;
};

std::vector<std::string> names() {
    std::vector<std::string> found;
    for (const Pattern& pattern : patterns())
        found.emplace_back(pattern.name);
    return found;
}

int run(const Options& options, const World& world) {
    const auto pattern = std::find_if(patterns().begin(), patterns().end(),
                                      [&](const Pattern& one) { return one.name == options.pattern; });
    const int steps = options.steps > 0 ? options.steps : pattern->steps;
    MPI_Barrier(MPI_COMM_WORLD);
    const double started = MPI_Wtime();
    const bool right = pattern->run(world, steps);
    const double total = mpi_support::max_over_ranks(MPI_Wtime() - started);
    const bool verified = mpi_support::all_ranks_agree(right);
    if (world.rank == 0 && !options.json.empty())
        mpi_support::write_json_line({{"program", options.pattern},
                                      {"ranks", world.ranks},
                                      {"steps", steps},
                                      {"total_s", total},
                                      {"verified", verified}},
                                     options.json);
    if (world.rank == 0 && options.json != "-")
        std::printf("%s: %d steps on %d ranks, %.4f s, results %s\n", options.pattern.c_str(), steps,
                    world.ranks, total, verified ? "right" : "WRONG");
    return verified ? 0 : 1;
}

}  // namespace

}  // namespace programs

int main(int argc, char** argv) {
    programs::Options options;
    cli::App app{"Small MPI programs of many kinds, of fixed work each."};
    std::string about = "The program:";
    for (const programs::Pattern& pattern : programs::patterns())
        about += "\n  " + std::string(pattern.name) + ": " + std::string(pattern.about);
    app.add_option("program", options.pattern, about)->required()->check(cli::IsMember(programs::names()));
    app.add_option("--steps", options.steps, "Steps (default: about a second's worth)")
        ->check(cli::Range(1, 100000000));
    app.add_option("--json", options.json,
                   "Write the results to this file as one JSON line; - prints that instead of the summary")
        ->check(mpi_support::output_file());
    return mpi_support::run_mpi_program(
        argc, argv, app, [&](const programs::World& world) { return programs::run(options, world); });
}
