// The time to post an operation and wait for it, when nothing else happens.
#include <algorithm>

#include "command_line/command_line.h"
#include "commands.h"
#include "interval.h"

namespace mpi_bench {

cli::App* declare_latency(cli::App& app, CommonOptions& options) {
    cli::App* command = app.add_subcommand("latency", "Time of an operation alone, from posting to its end");
    command->add_option("--op", options.op, "Operation")
        ->check(cli::IsMember(operation_names()))
        ->capture_default_str();
    declare_common(*command, options);
    return command;
}

int run_latency(const CommonOptions& options, const mpi_support::World& world) {
    Operation operation(options.op, options.bytes, options.allocator);
    Interval interval(options.shared_clock);
    std::vector<double> samples;
    bool verified = true;
    for (int i = -options.warmup; i < options.iterations; ++i) {
        if (is_verified(i, options)) operation.prepare(i);
        interval.start();
        operation.post();
        operation.wait();
        const double took = interval.elapsed();
        if (i >= 0) samples.push_back(took);
        if (is_verified(i, options)) verified = operation.verify(i) && verified;
    }
    const std::vector<double> slowest = mpi_support::max_over_ranks(samples);
    return finish({{"op", options.op},
                   {"bytes", options.bytes},
                   {"ranks", world.ranks},
                   {"pure_s", mpi_support::median(slowest)},
                   {"min_s", *std::min_element(slowest.begin(), slowest.end())}},
                  verified, options, world);
}

}  // namespace mpi_bench
