
#include "command_line/command_line.h"
#include "commands.h"
#include "support/output_file.h"

namespace mpi_bench {

void declare_common(cli::App& command, CommonOptions& options) {
    command.add_option("--bytes", options.bytes, "Message size; suffixes K, M, G are powers of 1024")
        ->transform(cli::AsSizeValue())
        ->capture_default_str();
    command.add_option("--iterations", options.iterations, "Timed iterations")
        ->check(cli::Range(1, 1000000))
        ->capture_default_str();
    command.add_option("--warmup", options.warmup, "Untimed iterations before those")
        ->check(cli::Range(0, 1000000))
        ->capture_default_str();
    command.add_option("--json", options.json, "Where the JSON line goes: a file, or - for standard output")
        ->check(mpi_support::output_file())
        ->capture_default_str();
    command.add_flag("--shared-clock", options.shared_clock,
                     "All ranks run on one machine: begin every interval at one instant of its clock");
    mpi_support::add_allocator_option(command, options.allocator);
}

double median_of_slowest(const std::vector<double>& samples) {
    return mpi_support::median(mpi_support::max_over_ranks(samples));
}

bool is_verified(int iteration, const CommonOptions& options) {
    return iteration == 0 || iteration == options.iterations - 1;
}

int finish(nlohmann::ordered_json line, bool verified, const CommonOptions& options,
           const mpi_support::World& world) {
    verified = mpi_support::all_ranks_agree(verified);
    if (world.rank == 0) {
        line["verified"] = verified;
        mpi_support::write_json_line(line, options.json);
        if (!verified)
            std::fprintf(stderr, "offpath-bench-mpi: %s: data arrived wrong\n", options.op.c_str());
    }
    return verified ? 0 : 1;
}

}  // namespace mpi_bench
