// offpath-bench-mpi: latency, bandwidth and overlap of MPI operations. A plain MPI program: it measures the
// MPI library that it runs on, including a preloaded one.
#include <algorithm>

#include "command_line/command_line.h"
#include "commands.h"

namespace {

std::string list_of_operations() {
    std::string text = "Operations, and what --bytes B means:\n";
    constexpr std::size_t name_width = 23;
    for (const mpi_bench::OperationEntry& entry : mpi_bench::operations()) {
        std::string name = entry.name;
        name.resize(std::max(name.size() + 1, name_width), ' ');
        text += "  " + name + "B bytes " + entry.shape.meaning_of_bytes + "\n";
    }
    return text +
           "Data are verified in the first and the last iteration; exit code 1 means that they were wrong.";
}

}  // namespace

int main(int argc, char** argv) {
    cli::App app("Benchmarks of MPI operations; prints one JSON line.", "offpath-bench-mpi");
    mpi_bench::OverlapOptions overlap;
    mpi_bench::CalibrateOptions calibrate;
    mpi_bench::MessagesOptions messages;
    mpi_bench::CommonOptions latency;
    mpi_bench::BandwidthOptions bandwidth;
    const cli::App* overlap_command = mpi_bench::declare_overlap(app, overlap);
    const cli::App* calibrate_command = mpi_bench::declare_calibrate(app, calibrate);
    const cli::App* messages_command = mpi_bench::declare_messages(app, messages);
    const cli::App* latency_command = mpi_bench::declare_latency(app, latency);
    mpi_bench::declare_bandwidth(app, bandwidth);
    mpi_bench::RmaOptions rma;
    const cli::App* rma_command = mpi_bench::declare_rma(app, rma);
    mpi_bench::ExchangeOptions exchange;
    const cli::App* exchange_command = mpi_bench::declare_exchange(app, exchange);
    mpi_bench::SweepOptions sweep;
    const cli::App* sweep_command = mpi_bench::declare_sweep(app, sweep);
    app.require_subcommand(1);
    app.footer(list_of_operations());
    return mpi_support::run_mpi_program(argc, argv, app, [&](const mpi_support::World& world) {
        if (overlap_command->parsed()) return mpi_bench::run_overlap(overlap, world);
        if (calibrate_command->parsed()) return mpi_bench::run_calibrate(calibrate, world);
        if (sweep_command->parsed()) return mpi_bench::run_sweep(sweep, world);
        if (rma_command->parsed()) return mpi_bench::run_rma(rma, world);
        if (exchange_command->parsed()) return mpi_bench::run_exchange(exchange, world);
        if (messages_command->parsed()) return mpi_bench::run_messages(messages, world);
        if (latency_command->parsed()) return mpi_bench::run_latency(latency, world);
        return mpi_bench::run_bandwidth(bandwidth, world);
    });
}
