// How much of an operation's time a computation hides, by the definition of the OSU benchmarks:
//   pure     post and wait, with nothing between
//   compute  a fixed amount of work, timed alone, with all ranks computing at once
//   total    post, the same work, wait
//   overlap  100 * (1 - (total - compute) / pure), at least 0
// No rank makes an MPI call while it computes. Ranks do not wait for each other between post and wait, as in
// the OSU benchmarks. Every iteration measures the three in turn, so that drift affects all of them. The work
// is made to last as long as the pure operation does in such turns. If the two were measured one after the
// other, the operation might take a different time, because rate-limited links save up a burst while nothing
// is sent.
#include <algorithm>

#include "command_line/command_line.h"
#include "commands.h"
#include "work.h"

namespace mpi_bench {

namespace {

struct Samples {
    std::vector<double> pure, compute, total, post, wait;
};

double time_pure(Operation& operation, Interval& interval) {
    interval.start();
    operation.post();
    operation.wait();
    return interval.elapsed();
}

void time_total(Operation& operation, std::uint64_t units, Interval& interval, Samples& samples) {
    interval.start();
    const double begun = MPI_Wtime();
    operation.post();
    samples.post.push_back(MPI_Wtime() - begun);
    compute(units);
    const double computed = interval.elapsed();
    operation.wait();
    samples.total.push_back(interval.elapsed());
    samples.wait.push_back(samples.total.back() - computed);
}

void time_turn(Operation& operation, std::uint64_t units, Interval& interval, Samples& samples) {
    samples.pure.push_back(time_pure(operation, interval));
    samples.compute.push_back(time_compute(units, interval));
    time_total(operation, units, interval, samples);
}

// Returns the units of work: the given number, or enough for the given time, or enough to last as long as the
// pure operation.
std::uint64_t choose_units(const OverlapOptions& options, const std::vector<double>& warm_pure,
                           Operation& operation, Interval& interval) {
    if (options.work_units > 0) return options.work_units;
    if (options.compute_s > 0) return calibrate_units(options.compute_s, interval);
    // The core's speed changes, so the fit is repeated until it holds.
    constexpr int kAttempts = 5;
    constexpr double kLeast = 0.97, kMost = 1.1;
    std::uint64_t units = calibrate_units(median_of_slowest(warm_pure), interval);
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        Samples turns;
        for (int i = 0; i < std::max(options.warmup, 3); ++i)
            time_turn(operation, units, interval, turns);
        const double ratio = median_of_slowest(turns.compute) / std::max(median_of_slowest(turns.pure), 1e-9);
        if (ratio >= kLeast && ratio <= kMost) break;
        units = std::max<std::uint64_t>(static_cast<std::uint64_t>(static_cast<double>(units) / ratio), 1);
    }
    return units;
}

}  // namespace

cli::App* declare_overlap(cli::App& app, OverlapOptions& options) {
    cli::App* command = app.add_subcommand(
        "overlap", "Overlap of an operation with a fixed amount of computation (OSU's definitions)");
    command->add_option("--op", options.op, "Operation")
        ->check(cli::IsMember(operation_names()))
        ->capture_default_str();
    declare_common(*command, options);
    auto* units =
        command->add_option("--work-units", options.work_units, "Computation, in units of 1024 multiply-adds")
            ->check(cli::Range(std::uint64_t{1}, std::uint64_t{1} << 50));
    command
        ->add_option("--compute-s", options.compute_s,
                     "Computation, as the seconds it takes the slowest rank while all compute (default: as "
                     "long as the "
                     "pure operation)")
        ->check(cli::Range(1e-9, 3600.0))
        ->excludes(units);
    return command;
}

Overlap measure_overlap(const OverlapOptions& options, Interval& interval) {
    Operation operation(options.op, options.bytes, options.allocator);
    std::vector<double> warm;
    for (int i = 0; i < std::max(options.warmup, 1); ++i)
        warm.push_back(time_pure(operation, interval));
    const std::uint64_t units = choose_units(options, warm, operation, interval);

    Samples samples;
    bool verified = true;
    for (int i = 0; i < options.iterations; ++i) {
        const std::uint64_t round = 2 * static_cast<std::uint64_t>(i) + 1;
        const bool check = is_verified(i, options);
        if (check) operation.prepare(round);
        samples.pure.push_back(time_pure(operation, interval));
        if (check) verified = operation.verify(round) && verified;
        samples.compute.push_back(time_compute(units, interval));
        if (check) operation.prepare(round + 1);
        time_total(operation, units, interval, samples);
        if (check) verified = operation.verify(round + 1) && verified;
    }

    return {median_of_slowest(samples.pure),
            median_of_slowest(samples.compute),
            median_of_slowest(samples.total),
            median_of_slowest(samples.post),
            median_of_slowest(samples.wait),
            units,
            verified};
}

int run_overlap(const OverlapOptions& options, const mpi_support::World& world) {
    Interval interval(options.shared_clock);
    const Overlap found = measure_overlap(options, interval);
    return finish({{"op", options.op},
                   {"bytes", options.bytes},
                   {"ranks", world.ranks},
                   {"pure_s", found.pure},
                   {"compute_s", found.compute},
                   {"work_units", found.work_units},
                   {"total_s", found.total},
                   {"overlap_percent", std::max(0.0, 100 * found.hidden())},
                   {"overlap_raw_percent", 100 * found.hidden()},
                   {"post_s", found.post},
                   {"wait_s", found.wait}},
                  found.verified, options, world);
}

}  // namespace mpi_bench
