#include "support/mpi_program.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "command_line/command_line.h"

namespace mpi_support {

namespace {

constexpr int kUsageExit = 2;

// Returns the exit code if a rank cannot continue or was asked for help, and nothing if all continue. The
// ranks of a job may have different command lines, so the lowest rank with a message prints it. This function
// calls PMPI, so that a library between the program and its MPI does not count these calls.
std::optional<int> parsed(int argc, char** argv, cli::App& app, const World& world) {
    int code = 0, speaker = world.ranks;
    const auto agree = [&] { PMPI_Allreduce(MPI_IN_PLACE, &speaker, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD); };
    try {
        app.parse(argc, argv);
        agree();
    } catch (const cli::ParseError& error) {
        code = error.exit_code() == 0 ? 0 : kUsageExit;
        speaker = world.rank;
        agree();
        if (speaker == world.rank) app.exit(error);
    }
    if (speaker == world.ranks) return std::nullopt;
    PMPI_Bcast(&code, 1, MPI_INT, speaker, MPI_COMM_WORLD);
    return code;
}

int parse_and_run(int argc, char** argv, cli::App& app, const World& world,
                  const std::function<int(const World&)>& body) {
    if (const std::optional<int> code = parsed(argc, argv, app, world)) return *code;
    try {
        return body(world);
    } catch (const cli::ParseError& error) {  // the error belongs to another command line of a batch
        if (world.rank == 0) app.exit(error);
    } catch (const UsageError& error) {
        if (world.rank == 0) std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), error.what());
    }
    return kUsageExit;
}

// Many ranks may detect the same error at once, and one message is enough. The others give the first ones
// time to end the job.
void abort_job(const cli::App& app, const World& world, const char* why) {
    constexpr int most_turns = 20;
    std::this_thread::sleep_for(std::min(world.rank, most_turns) * std::chrono::milliseconds(25));
    std::fprintf(stderr, "%s: rank %d: %s\n", app.get_name().c_str(), world.rank, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

}  // namespace

int run_mpi_program(int argc, char** argv, cli::App& app, const std::function<int(const World&)>& body) {
    MPI_Init(&argc, &argv);
    World world;
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.ranks);
    int code = 0;
    try {
        code = parse_and_run(argc, argv, app, world, body);
    } catch (const std::bad_alloc&) {
        abort_job(app, world, "out of memory: use more ranks on more nodes, or a smaller problem");
    } catch (const std::exception& error) {
        abort_job(app, world, error.what());
    }
    // MPICH up to 4.1 hangs in MPI_Finalize over TCP if its progress thread runs and ranks arrive at
    // different times.
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return code;
}

void write_json_line(const nlohmann::ordered_json& line, const std::string& where) {
    if (where == "-") {
        std::cout << line.dump() << std::endl;
        if (!std::cout) throw UsageError("cannot write to standard output");
        return;
    }
    std::ofstream file(where);
    file << line.dump() << '\n';
    file.flush();
    if (!file)
        throw UsageError("cannot write '" + where +
                         "': give a path in a writable folder, or - for standard output");
}

std::vector<double> max_over_ranks(std::vector<double> values, MPI_Comm comm) {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_MAX, comm);
    return values;
}

double max_over_ranks(double value, MPI_Comm comm) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, comm);
    return value;
}

bool all_ranks_agree(bool ok, MPI_Comm comm) {
    int all = ok ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, comm);
    return all != 0;
}

double median(std::vector<double> values) {
    if (values.empty()) return 0.0;
    std::sort(values.begin(), values.end());
    const size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

}  // namespace mpi_support
