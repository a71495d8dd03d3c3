// halo: a stencil on a block of a 1-, 2- or 3-dimensional domain for each rank, with the halo exchange in
// several variants (README.md).
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "command_line/command_line.h"
#include "halo/values.h"
#include "halo/variant.h"
#include "support/output_file.h"

namespace halo {

namespace {

using mpi_support::UsageError;

constexpr double kMostCells = 1e12;

struct Options {
    Domain domain;
    std::int64_t steps = 100;
    std::string variant = "mpi", way = "faster", kernels, json;
    mpi_support::Allocator allocator = mpi_support::Allocator::kMalloc;
};

std::string default_kernels() {
    std::error_code ignored;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
    return (program.parent_path().parent_path() / "lib" / "libhalo-kernels.so").string();
}

void declare(cli::App& app, Options& options) {
    options.domain.size = 256;
    app.add_option("--dims", options.domain.dims, "Dimensions of the domain")
        ->check(cli::Range(1, 3))
        ->capture_default_str();
    app.add_option("--size", options.domain.size, "Cells along each dimension, of all ranks together")
        ->check(cli::Range(std::int64_t{1}, std::int64_t{1} << 40))
        ->capture_default_str();
    app.add_option("--steps", options.steps, "Steps to simulate")
        ->check(cli::Range(std::int64_t{1}, std::int64_t{1} << 40))
        ->capture_default_str();
    app.add_flag("--periodic", options.domain.periodic, "Opposite ends of the domain are neighbours");
    app.add_option(
           "--variant", options.variant,
           "mpi (blocking), nonblocking (MPI_Isend and MPI_Irecv beside the interior), group (one recorded "
           "group of offpath), schedule (the device also computes the boundary), or target (the same in an "
           "OpenMP target region that calls MPI)")
        ->check(cli::IsMember({"mpi", "nonblocking", "group", "schedule", "target"}))
        ->capture_default_str();
    app.add_option("--way", options.way,
                   "Of --variant target: device (the device computes and exchanges the boundary), host (as "
                   "--variant mpi), or faster (it measures both, and keeps to the faster)")
        ->check(cli::IsMember({"device", "host", "faster"}))
        ->capture_default_str();
    app.add_option("--kernels", options.kernels,
                   "The library that the device loads for --variant schedule (default: "
                   "../lib/libhalo-kernels.so beside the program)");
    app.add_option("--json", options.json,
                   "Write the results to this file as one JSON line; - prints that instead of the summary")
        ->check(mpi_support::output_file());
    mpi_support::add_allocator_option(app, options.allocator);
}

std::unique_ptr<Variant> make(const Options& options, const Block& block) {
    if (options.variant == "group") return make_group(options.domain, block);
    if (options.variant == "schedule")
        return make_schedule(options.domain, block,
                             options.kernels.empty() ? default_kernels() : options.kernels);
    if (options.variant == "target") return make_target(options.domain, block, options.way);
    return make_mpi(options.domain, block, options.variant == "mpi", options.allocator);
}

int run(const Options& options, const World& world) {
    const Domain& domain = options.domain;
    const double cells = std::pow(static_cast<double>(domain.size), domain.dims);
    if (cells > kMostCells) throw UsageError("--size: the domain has more than 10^12 cells: make it smaller");
    Block block;
    if (!make_block(domain, world.ranks, world.rank, block))
        throw UsageError("--size: a domain of " + std::to_string(domain.size) + " cells along each of " +
                         std::to_string(domain.dims) + " dimensions cannot be cut into " +
                         std::to_string(world.ranks) + " blocks: make it larger, or use fewer ranks");
    const std::unique_ptr<Variant> variant = make(options, block);

    const auto restart = [&] {
        set_first_values(domain, block, variant->layout(), variant->field(0), variant->field(1));
        variant->first_values_set();
        MPI_Barrier(MPI_COMM_WORLD);
    };
    restart();
    for (int step = 0; step < variant->steps_before(); ++step)
        variant->step(step % 2);
    restart();
    const Times before = variant->times();
    const double begin = MPI_Wtime();
    for (std::int64_t step = 0; step < options.steps; ++step)
        variant->step(static_cast<int>(step % 2));
    const double mine = MPI_Wtime() - begin;
    const Times after = variant->times();

    // The maximum over the ranks of each time.
    const auto seconds = mpi_support::max_over_ranks({mine, after.boundary_s - before.boundary_s,
                                                      after.interior_s - before.interior_s,
                                                      after.exchange_s - before.exchange_s});
    std::uint64_t sum =
        checksum(domain, block, variant->layout(), variant->field(static_cast<int>(options.steps % 2)));
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (world.rank != 0) return 0;
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(sum));
    const nlohmann::json more = variant->more();
    if (!options.json.empty()) {
        nlohmann::json line = {
            {"program", "halo"},           {"variant", options.variant}, {"ranks", world.ranks},
            {"dims", domain.dims},         {"size", domain.size},        {"steps", options.steps},
            {"periodic", domain.periodic}, {"total_s", seconds[0]},      {"boundary_s", seconds[1]},
            {"interior_s", seconds[2]},    {"exchange_s", seconds[3]},   {"checksum", text}};
        line.update(more);
        mpi_support::write_json_line(line, options.json);
    }
    if (options.json == "-") return 0;
    std::printf("halo: %d dimensions of %lld cells, %lld steps, %d ranks, %s\n", domain.dims,
                static_cast<long long>(domain.size), static_cast<long long>(options.steps), world.ranks,
                options.variant.c_str());
    std::printf("  %.4f s; slowest rank: boundary %.4f s, interior %.4f s, exchange %.4f s\n", seconds[0],
                seconds[1], seconds[2], seconds[3]);
    for (const auto& [key, value] : more.items())
        std::printf("  %s: %s\n", key.c_str(), value.dump().c_str());
    std::printf("  checksum %s\n", text);
    return 0;
}

// Finds out whether the command line selects the variant `target`. Called before MPI_Init, and therefore
// before the command line is parsed.
bool asks_for_target(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--variant=target" || (word == "target" && std::string_view(argv[i - 1]) == "--variant"))
            return true;
    }
    return false;
}

}  // namespace

}  // namespace halo

int main(int argc, char** argv) {
    cli::App app("Stencils with a halo exchange by MPI, by a recorded group, or with kernels on the device.",
                 "halo");
    halo::Options options;
    halo::declare(app, options);
    if (halo::asks_for_target(argc, argv)) halo::load_target_regions();
    return mpi_support::run_mpi_program(
        argc, argv, app, [&](const mpi_support::World& world) { return halo::run(options, world); });
}
