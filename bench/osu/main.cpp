// offpath-bench-osu: one test of the OSU micro-benchmarks over a list of message sizes. A plain MPI program
// whose ranks may be hosts, devices or both, on different kinds of processors; `offpath bench osu` places
// them.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "command_line/command_line.h"
#include "measurement.h"
#include "support/output_file.h"

namespace {

struct Options {
    std::string test = "latency";
    std::vector<std::size_t> sizes;
    int window = 64;
    double seconds = 0.2;
    long iterations = 0;
    std::string json = "-";
};

struct Timing {
    long iterations;
    double seconds;
};

constexpr long kMostIterations = 100000;
constexpr std::size_t kLargestMessage = 1u << 30;

// Runs for about `budget` seconds. A first run that is long enough counts already, because the verified
// iteration before it was its warm-up. All ranks make the same decision, because timed() returns the same
// value on all.
Timing timed_for(osu::Measurement& measurement, std::size_t bytes, double budget) {
    long iterations = 1;
    double seconds = measurement.timed(bytes, iterations);
    while (seconds < budget / 8 && iterations < kMostIterations) {
        iterations *= 4;
        seconds = measurement.timed(bytes, iterations);
    }
    if (seconds >= budget) return {iterations, seconds};
    const double wanted = budget / std::max(seconds / static_cast<double>(iterations), 1e-9);
    iterations = std::clamp(std::lround(wanted), 1L, kMostIterations);
    return {iterations, measurement.timed(bytes, iterations)};
}

std::vector<std::size_t> default_sizes() {
    std::vector<std::size_t> sizes;
    for (std::size_t bytes = 1; bytes <= 4u << 20; bytes *= 2)
        sizes.push_back(bytes);
    return sizes;
}

void check(const Options& options) {
    for (const std::size_t bytes : options.sizes)
        if (bytes < 1 || bytes > kLargestMessage)
            throw mpi_support::UsageError("message size " + std::to_string(bytes) +
                                          " is out of range: use 1 to 1G");
}

int run(Options options, const mpi_support::World& world) {
    if (options.sizes.empty()) options.sizes = default_sizes();
    check(options);
    const osu::Shape shape{options.window, *std::max_element(options.sizes.begin(), options.sizes.end())};
    const auto measurement = osu::make_measurement(options.test, shape, world);
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    bool verified = true;
    for (const std::size_t bytes : options.sizes) {
        verified = mpi_support::all_ranks_agree(measurement->verified(bytes)) && verified;
        const Timing timing = options.iterations > 0
                                  ? Timing{options.iterations, measurement->timed(bytes, options.iterations)}
                                  : timed_for(*measurement, bytes, options.seconds);
        rows.push_back({{"bytes", bytes},
                        {"value", measurement->value(bytes, timing.iterations, timing.seconds)},
                        {"iterations", timing.iterations}});
    }
    if (world.rank == 0) {
        mpi_support::write_json_line({{"test", options.test},
                                      {"ranks", world.ranks},
                                      {"window", options.window},
                                      {"unit", measurement->unit()},
                                      {"rows", rows},
                                      {"verified", verified}},
                                     options.json);
        if (!verified)
            std::fprintf(stderr, "offpath-bench-osu: %s: data arrived wrong\n", options.test.c_str());
    }
    return verified ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    cli::App app("A test of the OSU micro-benchmarks, by its published definition; prints one JSON line.",
                 "offpath-bench-osu");
    Options options;
    app.add_option("--test", options.test, "latency and bw (2 ranks), mbw_mr (an even number), allgather")
        ->check(cli::IsMember(osu::test_names()))
        ->capture_default_str();
    app.add_option("--sizes", options.sizes,
                   "Message sizes, with commas; suffixes K, M, G are powers of 1024 "
                   "(default: the powers of two from 1 to 4M)")
        ->transform(cli::AsSizeValue())
        ->delimiter(',');
    app.add_option("--window", options.window, "Messages in flight at once (bw, mbw_mr)")
        ->check(cli::Range(1, 4096))
        ->capture_default_str();
    app.add_option("--seconds", options.seconds,
                   "How long to measure each size; at least one iteration is made")
        ->check(cli::Range(0.001, 3600.0))
        ->capture_default_str();
    app.add_option("--iterations", options.iterations, "Exactly so many timed iterations instead")
        ->check(cli::Range(1L, 1000000000L));
    app.add_option("--json", options.json, "Where the JSON line goes: a file, or - for standard output")
        ->check(mpi_support::output_file())
        ->capture_default_str();
    app.footer("Exit code 1 means that data arrived wrong; one iteration of every size is verified.");
    return mpi_support::run_mpi_program(argc, argv, app,
                                        [&](const mpi_support::World& world) { return run(options, world); });
}
