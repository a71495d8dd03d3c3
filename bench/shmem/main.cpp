// offpath-bench-shmem: OpenSHMEM's latency, bandwidth, message rate and overlap between PE 0 and the last PE,
// which waits in a barrier. The last line printed is a JSON object.
#include <shmem.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "command_line/command_line.h"
#include "measurement.h"
#include "support/output_file.h"

namespace shmem_bench {

namespace {

struct Options {
    std::vector<std::string> ops = {"put", "get", "fetch_add", "add", "compare_swap"};
    std::vector<std::string> memories = {"heap", "static"};
    std::vector<std::uint64_t> sizes = {8, 1 << 10, 64 << 10, 1 << 20};
    Settings settings;
    std::string json = "-";
};

void declare(cli::App& app, Options& options) {
    std::vector<std::string> known = transfers();
    known.insert(known.end(), atomics().begin(), atomics().end());
    app.add_option("--ops", options.ops, "Operations, separated by commas")
        ->delimiter(',')
        ->check(cli::IsMember(known))
        ->capture_default_str();
    app.add_option("--memory", options.memories, "Symmetric memory: heap, static")
        ->delimiter(',')
        ->check(cli::IsMember({"heap", "static"}))
        ->capture_default_str();
    app.add_option("--sizes", options.sizes,
                   "Sizes of puts and gets in bytes; suffixes K and M are powers of 1024")
        ->delimiter(',')
        ->transform(cli::AsSizeValue())
        ->check(cli::Range(std::uint64_t{1}, std::uint64_t{largest_bytes}))
        ->capture_default_str();
    app.add_option("--seconds", options.settings.seconds, "How long each value is measured, about")
        ->check(cli::Range(1e-4, 60.0))
        ->capture_default_str();
    app.add_option("--window", options.settings.window, "Operations in flight where their rate is measured")
        ->check(cli::Range(1, 4096))
        ->capture_default_str();
    app.add_option(
           "--before", options.settings.before_bytes,
           "Bytes moved right before each transfer whose overlap is measured: the burst that links let "
           "through at once")
        ->transform(cli::AsSizeValue())
        ->check(cli::Range(std::uint64_t{0}, std::uint64_t{largest_bytes}))
        ->capture_default_str();
    app.add_option("--json", options.json, "Where the JSON line goes: a file, or - for standard output")
        ->check(mpi_support::output_file())
        ->capture_default_str();
}

nlohmann::ordered_json transfer_row(const Pair& pair, const std::string& op, const std::string& memory,
                                    std::size_t bytes, const Settings& settings) {
    const bool right = verify(pair, op, bytes);
    const double seconds = latency(pair, op, bytes, settings);
    const double per_second = rate(pair, op, bytes, settings);
    const Overlap found = overlap(pair, op, bytes, settings);
    return {{"op", op},
            {"memory", memory},
            {"bytes", bytes},
            {"latency_s", seconds},
            {"bandwidth_Bps", per_second * static_cast<double>(bytes)},
            {"messages_per_s", per_second},
            {"overlap_percent", found.percent()},
            {"pure_s", found.pure_s},
            {"compute_s", found.compute_s},
            {"total_s", found.total_s},
            {"verified", right && verify(pair, op, bytes)}};
}

nlohmann::ordered_json atomic_row(const Pair& pair, const std::string& op, const std::string& memory,
                                  const Settings& settings) {
    const double seconds = atomic_latency(pair, op, settings);
    return {{"op", op},
            {"memory", memory},
            {"bytes", sizeof(long)},
            {"latency_s", seconds},
            {"messages_per_s", atomic_rate(pair, op, settings)},
            {"verified", verify_atomic(pair, op)}};
}

int measure(const Options& options) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    bool verified = true;
    for (const std::string& memory : options.memories) {
        const Pair pair(memory == "heap" ? Memory::heap : Memory::static_data);
        if (shmem_my_pe() == 0) {
            for (const std::string& op : options.ops) {
                if (!is_transfer(op)) {
                    rows.push_back(atomic_row(pair, op, memory, options.settings));
                    continue;
                }
                for (const std::uint64_t bytes : options.sizes)
                    rows.push_back(transfer_row(pair, op, memory, bytes, options.settings));
            }
        }
        shmem_barrier_all();
    }
    if (shmem_my_pe() != 0) return 0;
    for (const auto& row : rows)
        verified = verified && row.at("verified").get<bool>();
    const nlohmann::ordered_json said = {{"program", "offpath-bench-shmem"},
                                         {"library", SHMEM_VENDOR_STRING},
                                         {"pes", shmem_n_pes()},
                                         {"rows", rows},
                                         {"verified", verified}};
    if (options.json == "-") {
        std::cout << said.dump() << std::endl;
    } else if (!(std::ofstream(options.json) << said.dump() << '\n')) {
        std::fprintf(stderr, "offpath-bench-shmem: cannot write '%s'\n", options.json.c_str());
        return 2;
    }
    if (!verified) std::fprintf(stderr, "offpath-bench-shmem: data arrived wrong\n");
    return verified ? 0 : 1;
}

}  // namespace

}  // namespace shmem_bench

int main(int argc, char** argv) {
    cli::App app("OpenSHMEM between PE 0 and the last PE: latency, bandwidth, message rate, overlap.",
                 "offpath-bench-shmem");
    shmem_bench::Options options;
    shmem_bench::declare(app, options);
    // Every process parses the command line before there are PEs; only one of them prints.
    const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
    const bool speaks = rank == nullptr || std::atoi(rank) == 0;
    try {
        app.parse(argc, argv);
    } catch (const cli::ParseError& error) {
        if (speaks) app.exit(error);
        return error.exit_code() == 0 ? 0 : 2;
    }
    shmem_init();
    if (shmem_n_pes() < 2 && speaks)
        std::fprintf(stderr, "offpath-bench-shmem: one PE: it measures itself\n");
    const int code = shmem_bench::measure(options);
    shmem_finalize();
    return code;
}
