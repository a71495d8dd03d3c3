// offpath-bench-primitives: latency and bandwidth of offpath's basic primitives between two ranks, over a
// list of message sizes. Run it with mpirun -n 2 and a daemon on each node; it prints one JSON line.
//   latency    ping-pong: half the mean time of a round trip
//   bandwidth  rank 0 sends windows of messages, and the other rank answers each; bytes over time
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "command_line/command_line.h"
#include "pair.h"
#include "support/output_file.h"

namespace {

struct Options {
    std::vector<std::size_t> sizes;
    std::string memory = "heap";
    double seconds = 0.1;
    std::string json = "-";
};

constexpr long kMostIterations = 20000;
constexpr std::size_t kLargestMessage = 1u << 30;
constexpr std::size_t kWindowBytes = 16u << 20;  // in flight, in 4 to 64 messages

int window_of(std::size_t bytes) {
    return static_cast<int>(std::clamp<std::size_t>(kWindowBytes / bytes, 4, 64));
}

// Returns the mean seconds of an iteration, measured for about `budget` seconds. The ranks agree on the
// times, so both make the same decision.
template <typename Timed>
double mean(double budget, const Timed& timed) {
    long iterations = 1;
    double seconds = timed(iterations);
    while (seconds < budget / 4 && iterations < kMostIterations) {
        iterations = std::min(4 * iterations, kMostIterations);
        seconds = timed(iterations);
    }
    const double wanted = budget / std::max(seconds / static_cast<double>(iterations), 1e-9);
    iterations = std::clamp(std::lround(wanted), 1L, kMostIterations);
    return timed(iterations) / static_cast<double>(iterations);
}

int run(const Options& options) {
    const std::size_t largest = *std::max_element(options.sizes.begin(), options.sizes.end());
    primitives::Pair pair(
        options.memory == "offpath" ? primitives::Memory::offpath : primitives::Memory::heap,
        std::max(largest, sizeof(double)));
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    bool right = true;
    for (const std::size_t bytes : options.sizes) {
        right = pair.verified(bytes) && right;
        const double round_trip =
            mean(options.seconds, [&](long iterations) { return pair.ping_pong(bytes, iterations); });
        const int window = window_of(bytes);
        const double per_window =
            mean(options.seconds, [&](long iterations) { return pair.stream(bytes, window, iterations); });
        rows.push_back({{"bytes", bytes},
                        {"latency_s", round_trip / 2},
                        {"bandwidth_Bps", static_cast<double>(bytes) * window / per_window},
                        {"window", window}});
    }
    if (pair.first()) {
        const nlohmann::ordered_json line = {
            {"back_end", pair.back_end()}, {"rows", rows}, {"verified", right}};
        std::FILE* const out = options.json == "-" ? stdout : std::fopen(options.json.c_str(), "w");
        if (out == nullptr) throw std::runtime_error(options.json + " cannot be written");
        std::fprintf(out, "%s\n", line.dump().c_str());
        if (out == stdout)
            std::fflush(out);
        else
            std::fclose(out);
        if (!right) std::fprintf(stderr, "offpath-bench-primitives: data arrived wrong\n");
    }
    return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    cli::App app("Latency and bandwidth of offpath's basic primitives between two ranks.",
                 "offpath-bench-primitives");
    Options options;
    app.add_option("--sizes", options.sizes,
                   "Message sizes, with commas; suffixes K, M, G are powers of 1024 (default: 1 to 4M by 4)")
        ->transform(cli::AsSizeValue())
        ->delimiter(',');
    app.add_option("--memory", options.memory, "Where messages lie: heap, or offpath (offpath_mem_alloc)")
        ->check(cli::IsMember({"heap", "offpath"}))
        ->capture_default_str();
    app.add_option("--seconds", options.seconds, "How long to measure each value")
        ->check(cli::Range(0.001, 60.0))
        ->capture_default_str();
    app.add_option("--json", options.json, "Where the JSON line goes: a file, or - for standard output")
        ->check(mpi_support::output_file())
        ->capture_default_str();
    app.footer("Exit codes: 1 wrong data or an error, 2 wrong usage, 77 no daemon.");
    try {
        app.parse(argc, argv);
        if (options.sizes.empty())
            for (std::size_t bytes = 1; bytes <= 4u << 20; bytes *= 4)
                options.sizes.push_back(bytes);
        for (const std::size_t bytes : options.sizes)
            if (bytes < 1 || bytes > kLargestMessage)
                throw cli::ParseError("--sizes", std::to_string(bytes) + " is out of range: use 1 to 1G");
        return run(options);
    } catch (const cli::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    } catch (const primitives::NoDevice&) {
        std::fprintf(stderr, "offpath-bench-primitives: there is no offpathd here\n");
        return 77;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "offpath-bench-primitives: %s\n", error.what());
        return 1;
    }
}
