// How long a one-sided operation takes, from its origin's lock to its unlock, while the target computes and
// makes no MPI call. Rank 0 is the origin and the last rank is the target. All others wait.
#include <algorithm>
#include <cstring>

#include "command_line/command_line.h"
#include "commands.h"
#include "work.h"

namespace mpi_bench {

namespace {

// The target starts to compute this much earlier, so that the origin finds it busy.
constexpr double head_start_s = 2e-3;

struct Windowed {
    explicit Windowed(std::uint64_t bytes) : count(static_cast<int>(bytes / sizeof(double))) {
        MPI_Win_allocate(static_cast<MPI_Aint>(bytes), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                         &win);
        std::fill(memory, memory + count, 0.0);
        local.assign(static_cast<std::size_t>(count), 0.0);
    }
    ~Windowed() { MPI_Win_free(&win); }
    Windowed(const Windowed&) = delete;
    Windowed& operator=(const Windowed&) = delete;

    int count;
    double* memory = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    std::vector<double> local;
};

// Returns the units of work that take about `seconds` here. It uses the fastest of several tries, because
// other processes can only slow them down.
std::uint64_t units_for(double seconds) {
    constexpr std::uint64_t tried = 2048;
    double fastest = 1e9;
    for (int i = 0; i < 20; ++i) {
        const double begun = MPI_Wtime();
        compute(tried);
        fastest = std::min(fastest, MPI_Wtime() - begun);
    }
    return std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(seconds / std::max(fastest, 1e-9) * static_cast<double>(tried)));
}

double run_origin(const RmaOptions& options, Windowed& at, int target, double value) {
    std::fill(at.local.begin(), at.local.end(), options.op == "get" ? -1.0 : value);
    const double begun = MPI_Wtime();
    while (MPI_Wtime() - begun < head_start_s) {
    }
    double before = 0;
    const double started = MPI_Wtime();
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, at.win);
    if (options.op == "put") {
        MPI_Put(at.local.data(), at.count, MPI_DOUBLE, target, 0, at.count, MPI_DOUBLE, at.win);
    } else if (options.op == "get") {
        MPI_Get(at.local.data(), at.count, MPI_DOUBLE, target, 0, at.count, MPI_DOUBLE, at.win);
    } else if (options.op == "accumulate") {
        MPI_Accumulate(at.local.data(), at.count, MPI_DOUBLE, target, 0, at.count, MPI_DOUBLE, MPI_SUM,
                       at.win);
    } else {
        MPI_Fetch_and_op(&value, &before, MPI_DOUBLE, target, 0, MPI_SUM, at.win);
    }
    MPI_Win_unlock(target, at.win);
    return MPI_Wtime() - started;
}

// Checks what the target's memory must hold after `rounds` operations with `value`.
bool verify(const RmaOptions& options, Windowed& at, bool origin, double value, double sum) {
    const double expected = options.op == "put" ? value : options.op == "get" ? 0.0 : sum;
    const int checked = options.op == "fetch_and_op" ? 1 : at.count;
    const double* data = origin ? at.local.data() : at.memory;
    if (origin && options.op != "get") return true;
    return std::all_of(data, data + checked, [&](double found) { return found == expected; });
}

}  // namespace

cli::App* declare_rma(cli::App& app, RmaOptions& options) {
    cli::App* command = app.add_subcommand(
        "rma", "Time of a one-sided operation, lock and unlock included, to a target that computes");
    options.op = "put";
    command->add_option("--op", options.op, "Operation")
        ->check(cli::IsMember({"put", "get", "accumulate", "fetch_and_op"}))
        ->capture_default_str();
    declare_common(*command, options);
    command
        ->add_option("--busy-s", options.busy_s,
                     "How long the target computes in each iteration; 0: it waits in MPI")
        ->check(cli::Range(0.0, 3600.0))
        ->capture_default_str();
    return command;
}

int run_rma(const RmaOptions& options, const mpi_support::World& world) {
    Windowed at(options.op == "fetch_and_op" ? sizeof(double)
                                             : options.bytes / sizeof(double) * sizeof(double));
    const int target = world.ranks - 1;
    const std::uint64_t units = world.rank == target && options.busy_s > 0 ? units_for(options.busy_s) : 0;
    std::vector<double> completion, busy;
    bool verified = at.count > 0;
    double sum = 0;
    for (int i = -options.warmup; i < options.iterations; ++i) {
        const double value = i + options.warmup + 1;
        sum += value;
        MPI_Barrier(MPI_COMM_WORLD);
        if (world.rank == target && world.ranks > 1) {
            const double begun = MPI_Wtime();
            if (units > 0) compute(units);
            if (i >= 0) busy.push_back(MPI_Wtime() - begun);
        }
        if (world.rank == 0) {
            const double took = run_origin(options, at, target, value);
            if (i >= 0) completion.push_back(took);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (world.rank == target) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, at.win);
            verified = verify(options, at, false, value, sum) && verified;
            MPI_Win_unlock(target, at.win);
        }
        if (world.rank == 0) verified = verify(options, at, true, value, sum) && verified;
    }
    // Only the origin and the target have samples.
    completion.resize(static_cast<std::size_t>(options.iterations), 0.0);
    busy.resize(static_cast<std::size_t>(options.iterations), 0.0);
    return finish({{"op", options.op},
                   {"bytes", static_cast<std::uint64_t>(at.count) * sizeof(double)},
                   {"ranks", world.ranks},
                   {"completion_s", median_of_slowest(completion)},
                   {"target_busy_s", median_of_slowest(busy)}},
                  verified, options, world);
}

}  // namespace mpi_bench
