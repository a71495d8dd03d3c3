// What small messages and small non-blocking collectives cost between two ranks on separate cores:
//   latency   half a round trip of MPI_Send and MPI_Recv, in seconds
//   rate      messages per second: windows of MPI_Isend and MPI_Irecv, each answered by an empty message
//   ibcast iallreduce ialltoall   post and wait on the two ranks, in seconds
// The measurements run between ranks of rank 0's node, and between rank 0 and another node, if there are such
// ranks. All other ranks sleep meanwhile. Each value is the median over batches; the report contains the
// batches too. With --turns, several such programs, for instance with and without offpath, take turns batch
// by batch (turns.h).
#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>

#include <sched.h>
#include <time.h>

#include "command_line/command_line.h"
#include "commands.h"
#include "support/output_file.h"
#include "turns.h"

namespace mpi_bench {

namespace {

constexpr int kMessageTag = 3, kWindowAnswerTag = 4;
constexpr int kWindow = 64;

// Binds the first and the second rank of a pair to two of the CPUs that this process was given.
void pin(int which) {
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    const int count = CPU_COUNT(&allowed);
    int seen = 0;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        if (seen++ == which % count) CPU_SET(cpu, &one);
    }
    sched_setaffinity(0, sizeof one, &one);
}

struct Pair {
    MPI_Comm comm;  // has only the two ranks
    int me;         // 0 or 1
    std::vector<unsigned char> out, in;
};

using Test = std::function<void(Pair&, int bytes, int times)>;

void ping_pong(Pair& pair, int bytes, int times) {
    for (int i = 0; i < times; ++i) {
        if (pair.me == 0) {
            MPI_Send(pair.out.data(), bytes, MPI_BYTE, 1, kMessageTag, pair.comm);
            MPI_Recv(pair.in.data(), bytes, MPI_BYTE, 1, kMessageTag, pair.comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(pair.in.data(), bytes, MPI_BYTE, 0, kMessageTag, pair.comm, MPI_STATUS_IGNORE);
            MPI_Send(pair.out.data(), bytes, MPI_BYTE, 0, kMessageTag, pair.comm);
        }
    }
}

void windows(Pair& pair, int bytes, int times) {
    std::vector<MPI_Request> requests(kWindow);
    for (int i = 0; i < times; ++i) {
        for (MPI_Request& request : requests) {
            if (pair.me == 0) {
                MPI_Isend(pair.out.data(), bytes, MPI_BYTE, 1, kMessageTag, pair.comm, &request);
            } else {
                MPI_Irecv(pair.in.data(), bytes, MPI_BYTE, 0, kMessageTag, pair.comm, &request);
            }
        }
        MPI_Waitall(kWindow, requests.data(), MPI_STATUSES_IGNORE);
        if (pair.me == 0) {
            MPI_Recv(nullptr, 0, MPI_BYTE, 1, kWindowAnswerTag, pair.comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Send(nullptr, 0, MPI_BYTE, 0, kWindowAnswerTag, pair.comm);
        }
    }
}

template <typename Post>
Test collective(Post post) {
    return [post](Pair& pair, int bytes, int times) {
        for (int i = 0; i < times; ++i) {
            MPI_Request request = MPI_REQUEST_NULL;
            post(pair, bytes, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    };
}

struct Kind {
    const char* name;
    double units_a_time;  // the divisor of a call's time, or the factor of a rate
    bool is_rate;
    Test test;
};

const std::vector<Kind>& kinds() {
    static const std::vector<Kind> all = {
        {"latency", 2, false, ping_pong},
        {"rate", kWindow, true, windows},
        {"ibcast", 1, false, collective([](Pair& pair, int bytes, MPI_Request* request) {
             MPI_Ibcast(pair.out.data(), bytes, MPI_BYTE, 0, pair.comm, request);
         })},
        {"iallreduce", 1, false, collective([](Pair& pair, int bytes, MPI_Request* request) {
             MPI_Iallreduce(pair.out.data(), pair.in.data(), bytes / 8, MPI_INT64_T, MPI_SUM, pair.comm,
                            request);
         })},
        {"ialltoall", 1, false, collective([](Pair& pair, int bytes, MPI_Request* request) {
             MPI_Ialltoall(pair.out.data(), bytes, MPI_BYTE, pair.in.data(), bytes, MPI_BYTE, pair.comm,
                           request);
         })},
    };
    return all;
}

std::vector<double> measure(Pair& pair, const Kind& kind, int bytes, const MessagesOptions& options,
                            Turns& turns) {
    std::vector<double> samples;
    for (int i = 0; i < options.batches; ++i) {
        turns.take();
        kind.test(pair, bytes, options.batch / 4 + 1);
        MPI_Barrier(pair.comm);
        const double begun = MPI_Wtime();
        kind.test(pair, bytes, options.batch);
        const double each = (MPI_Wtime() - begun) / options.batch;
        samples.push_back(kind.is_rate ? kind.units_a_time / each : each / kind.units_a_time);
        turns.give(2);
    }
    return samples;
}

// Returns the partners of rank 0: a rank of its node, and one of another node, if they exist. The result is
// the same on all ranks.
std::vector<std::pair<const char*, int>> partners(const mpi_support::World& world) {
    MPI_Comm node = MPI_COMM_NULL;
    int first = world.rank;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Bcast(&first, 1, MPI_INT, 0, node);
    MPI_Comm_free(&node);
    std::vector<int> firsts(static_cast<std::size_t>(world.ranks));
    MPI_Allgather(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, MPI_COMM_WORLD);
    std::vector<std::pair<const char*, int>> found;
    const auto look_for = [&](const char* where, bool same) {
        for (int rank = 1; rank < world.ranks; ++rank) {
            if ((firsts[static_cast<std::size_t>(rank)] == firsts[0]) != same) continue;
            found.emplace_back(where, rank);
            return;
        }
    };
    look_for("node", true);
    look_for("network", false);
    return found;
}

// Connects every pair of ranks, as a program does in its first steps. From the first connection on, Open MPI
// polls its sockets in every call. Without this step, the pair that connects first would be slower, even
// within a node.
void meet_all(const mpi_support::World& world) {
    std::vector<int> out(static_cast<std::size_t>(world.ranks)), in(out.size());
    MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, MPI_COMM_WORLD);
}

// For idle ranks: yields the core until the other ranks arrive.
void sleep_until_all_are_here() {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int done = 0; done == 0;) {
        const timespec pause{0, 2'000'000};
        nanosleep(&pause, nullptr);
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
}

}  // namespace

cli::App* declare_messages(cli::App& app, MessagesOptions& options) {
    options.json = "-";
    cli::App* command = app.add_subcommand(
        "messages", "Latency and rate of small messages and collectives between two ranks");
    command->add_option("--sizes", options.sizes, "Bytes, multiples of 8")
        ->delimiter(',')
        ->transform(cli::AsSizeValue())
        ->check(cli::Range(std::uint64_t{8}, std::uint64_t{1} << 20))
        ->capture_default_str();
    command->add_option("--batches", options.batches, "Batches, over which the median is taken")
        ->check(cli::Range(1, 100000))
        ->capture_default_str();
    command->add_option("--batch", options.batch, "Round trips, windows or collectives in a batch")
        ->check(cli::Range(1, 1000000))
        ->capture_default_str();
    command->add_option("--turns", options.turns,
                        "Existing file by which programs take turns, batch by batch; needs --turn");
    command->add_option("--turn", options.turn, "Which of the programs this one is, from 0")
        ->check(cli::Range(0, 1000));
    command->add_option("--programs", options.programs, "How many programs take turns")
        ->check(cli::Range(1, 1000))
        ->capture_default_str();
    command->add_option("--json", options.json, "Where the JSON line goes: a file, or - for standard output")
        ->check(mpi_support::output_file())
        ->capture_default_str();
    return command;
}

int run_messages(const MessagesOptions& options, const mpi_support::World& world) {
    if (world.ranks < 2) throw mpi_support::UsageError("messages needs at least 2 ranks");
    if (options.turn >= options.programs)
        throw mpi_support::UsageError("--turn must be less than --programs");
    meet_all(world);
    std::optional<Turns> turns;
    if (options.turns.empty()) {
        turns.emplace();
    } else {
        turns.emplace(options.turns, static_cast<std::uint32_t>(options.turn),
                      static_cast<std::uint32_t>(options.programs));
    }
    auto rows = nlohmann::ordered_json::array();
    for (const auto& [where, partner] : partners(world)) {
        const bool takes_part = world.rank == 0 || world.rank == partner;
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, world.rank, &comm);
        if (takes_part) {
            cpu_set_t before;
            sched_getaffinity(0, sizeof before, &before);
            const int me = world.rank == 0 ? 0 : 1;
            pin(me);
            const std::size_t largest = 2 * *std::max_element(options.sizes.begin(), options.sizes.end());
            Pair pair{comm, me, std::vector<unsigned char>(largest), std::vector<unsigned char>(largest)};
            for (const Kind& kind : kinds())
                for (const std::uint64_t bytes : options.sizes) {
                    const auto samples = measure(pair, kind, static_cast<int>(bytes), options, *turns);
                    rows.push_back({{"test", kind.name},
                                    {"where", where},
                                    {"bytes", bytes},
                                    {"value", mpi_support::median(samples)},
                                    {"batches", samples}});
                }
            MPI_Comm_free(&comm);
            sched_setaffinity(0, sizeof before, &before);
        }
        sleep_until_all_are_here();
    }
    if (world.rank == 0) mpi_support::write_json_line({{"ranks", world.ranks}, {"rows", rows}}, options.json);
    return 0;
}

}  // namespace mpi_bench
