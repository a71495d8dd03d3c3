// The subcommands. Each declares its options on the program's command line. Its own function runs it, prints
// one JSON line on rank 0 and returns the exit code: 1 if wrong data arrived.
//
// Times are those of the slowest rank: the maximum over ranks in each iteration, then the median over
// iterations. All ranks begin every timed interval together (interval.h).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "interval.h"
#include "operations.h"
#include "support/mpi_program.h"

namespace offpath::command_line {
class App;
}

namespace mpi_bench {

struct CommonOptions {
    std::string op = "ialltoall";
    std::string json = "-";
    std::uint64_t bytes = 1 << 20;
    int iterations = 20;
    int warmup = 3;
    bool shared_clock = false;
    mpi_support::Allocator allocator = mpi_support::Allocator::kMalloc;
};

struct OverlapOptions : CommonOptions {
    std::uint64_t work_units = 0;
    double compute_s = 0;
};

struct CalibrateOptions : CommonOptions {
    std::vector<std::uint64_t> sizes;
    std::vector<double> compute_s;  // one for each size, or empty
    double seconds = 0.3;
};

struct MessagesOptions {
    std::vector<std::uint64_t> sizes = {8, 64, 512, 1024, 4096};
    std::string json = "-";
    std::string turns;
    int turn = 0, programs = 1;
    int batches = 30;
    int batch = 200;
};

struct BandwidthOptions : CommonOptions {
    int window = 64;
};

struct RmaOptions : CommonOptions {
    double busy_s = 0.2;
};

struct ExchangeOptions : CommonOptions {
    double skew_s = 0.001;
};

struct SweepOptions {
    std::vector<std::string> points;
    std::string json = "-";
    double seconds = 0.2;
    bool shared_clock = false;
    mpi_support::Allocator allocator = mpi_support::Allocator::kMalloc;
};

offpath::command_line::App* declare_overlap(offpath::command_line::App& app, OverlapOptions& options);
offpath::command_line::App* declare_calibrate(offpath::command_line::App& app, CalibrateOptions& options);
offpath::command_line::App* declare_messages(offpath::command_line::App& app, MessagesOptions& options);
offpath::command_line::App* declare_latency(offpath::command_line::App& app, CommonOptions& options);
offpath::command_line::App* declare_bandwidth(offpath::command_line::App& app, BandwidthOptions& options);
offpath::command_line::App* declare_rma(offpath::command_line::App& app, RmaOptions& options);
offpath::command_line::App* declare_exchange(offpath::command_line::App& app, ExchangeOptions& options);
offpath::command_line::App* declare_sweep(offpath::command_line::App& app, SweepOptions& options);

int run_overlap(const OverlapOptions& options, const mpi_support::World& world);
int run_calibrate(const CalibrateOptions& options, const mpi_support::World& world);
int run_messages(const MessagesOptions& options, const mpi_support::World& world);
int run_latency(const CommonOptions& options, const mpi_support::World& world);
int run_bandwidth(const BandwidthOptions& options, const mpi_support::World& world);
int run_rma(const RmaOptions& options, const mpi_support::World& world);
int run_exchange(const ExchangeOptions& options, const mpi_support::World& world);
int run_sweep(const SweepOptions& options, const mpi_support::World& world);

// The results of measure_overlap, in seconds.
struct Overlap {
    double pure, compute, total, post, wait;
    std::uint64_t work_units;
    bool verified;

    // The share of the pure time that the computation has hidden.
    double hidden() const { return pure > 0 ? 1 - (total - compute) / pure : 0; }
};
// Collective.
Overlap measure_overlap(const OverlapOptions& options, Interval& interval);

// The options that all subcommands have.
void declare_common(offpath::command_line::App& command, CommonOptions& options);

// Takes the maximum of `samples` over all ranks in each iteration, then the median. Collective.
double median_of_slowest(const std::vector<double>& samples);
// Prints on rank 0; returns the exit code, the same on all ranks. Collective.
int finish(nlohmann::ordered_json line, bool verified, const CommonOptions& options,
           const mpi_support::World& world);

// Whether the data of this iteration are verified: only those of the first and the last are.
bool is_verified(int iteration, const CommonOptions& options);

}  // namespace mpi_bench
