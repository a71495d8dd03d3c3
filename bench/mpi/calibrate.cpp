// Measures one operation at several sizes for `offpath tune`: the pure time, and the share of it that a
// computation hides. Each size takes about the time that was asked for.
#include <algorithm>
#include <cmath>

#include "command_line/command_line.h"
#include "commands.h"

namespace mpi_bench {

namespace {

// An iteration of the measurement is a pure operation, a computation of the same length, and both together.
constexpr double kTimesPureInAnIteration = 3.5;
constexpr int kLeastIterations = 3, kMostIterations = 200;

double time_once(const OverlapOptions& options, Interval& interval) {
    Operation operation(options.op, options.bytes, options.allocator);
    std::vector<double> samples;
    for (int i = 0; i < 3; ++i) {
        interval.start();
        operation.post();
        operation.wait();
        samples.push_back(interval.elapsed());
    }
    return std::max(median_of_slowest(samples), 1e-7);
}

// Returns the job's number of nodes, found through shared memory. Collective.
int count_nodes() {
    MPI_Comm node = MPI_COMM_NULL;
    int rank = 0, nodes = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_free(&node);
    const int first = rank == 0 ? 1 : 0;
    MPI_Allreduce(&first, &nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return nodes;
}

}  // namespace

cli::App* declare_calibrate(cli::App& app, CalibrateOptions& options) {
    cli::App* command =
        app.add_subcommand("calibrate", "Pure time and overlap of an operation at several sizes, for tuning");
    command->add_option("--op", options.op, "Operation")
        ->check(cli::IsMember(operation_names()))
        ->capture_default_str();
    declare_common(*command, options);
    command->add_option("--sizes", options.sizes, "What --bytes means, one after the other")
        ->delimiter(',')
        ->transform(cli::AsSizeValue())
        ->required();
    command
        ->add_option("--compute-s", options.compute_s,
                     "Computation at each size, in seconds (default: as long as the pure operation)")
        ->delimiter(',')
        ->check(cli::Range(1e-9, 3600.0));
    command->add_option("--seconds", options.seconds, "How long a size is measured")
        ->check(cli::Range(0.001, 600.0))
        ->capture_default_str();
    return command;
}

int run_calibrate(const CalibrateOptions& options, const mpi_support::World& world) {
    if (!options.compute_s.empty() && options.compute_s.size() != options.sizes.size())
        throw mpi_support::UsageError("--compute-s needs one value for each of --sizes");
    Interval interval(options.shared_clock);
    auto rows = nlohmann::ordered_json::array();
    bool verified = true;
    for (std::size_t i = 0; i < options.sizes.size(); ++i) {
        OverlapOptions one;
        static_cast<CommonOptions&>(one) = options;
        one.bytes = options.sizes[i];
        one.warmup = 2;
        const double pure = time_once(one, interval);
        one.compute_s = options.compute_s.empty() ? pure : options.compute_s[i];
        const double iteration = kTimesPureInAnIteration * std::max(pure, one.compute_s);
        one.iterations = static_cast<int>(
            std::clamp(options.seconds / iteration, 1.0 * kLeastIterations, 1.0 * kMostIterations));
        const Overlap found = measure_overlap(one, interval);
        verified = found.verified && verified;
        rows.push_back({{"bytes", one.bytes},
                        {"pure_s", found.pure},
                        {"compute_s", found.compute},
                        {"total_s", found.total},
                        {"overlap", std::clamp(found.hidden(), 0.0, 1.0)}});
    }
    const int nodes = count_nodes();
    return finish({{"op", options.op}, {"ranks", world.ranks}, {"nodes", nodes}, {"rows", rows}}, verified,
                  options, world);
}

}  // namespace mpi_bench
