// Hosts and devices share work by their measured speed: gravity among N bodies, of which each rank computes a
// block. First the hosts alone compute the same steps. Both ways must end at the same positions.
//
// Two ways to run it, in an emulated cluster and on this machine:
//   offpath lab run --nodes 2 --dpu remote --dpu-ranks -- build/bin/example-device-ranks-share
//   tests/device_ranks/mpmd.sh 1 2 1 labels build/bin/example-device-ranks-share --bodies 2000
#include <offpath/device_ranks.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "command_line/command_line.h"
#include "support/mpi_program.h"

namespace {

using mpi_support::World;

struct Options {
    int bodies = 4000;
    int steps = 12;
    int rebalance = 3;
};

struct Body {
    double x, y, z;
};

constexpr double kTimeStep = 1e-3;
constexpr double kSoftening = 1e-2;  // added to squared distances, so that close bodies do not fly apart
constexpr double kSampleSeconds = 0.02;
constexpr double kAgreement =
    1e-9;  // difference of positions, relative to the size of the cloud: sums differ by rounding

Body operator+(Body a, Body b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z};
}
Body operator*(double factor, Body a) {
    return {factor * a.x, factor * a.y, factor * a.z};
}

std::vector<Body> initial_cloud(int bodies) {
    std::vector<Body> cloud;
    for (int i = 0; i < bodies; ++i) {
        // Positions on a spiral through the unit ball. They are the same on every machine, and all different.
        const double height = 1 - 2 * (i + 0.5) / bodies, turn = 2.399963229728653 * i;
        const double radius = std::cbrt((i * 0.6180339887498949) - std::floor(i * 0.6180339887498949));
        const double ring = std::sqrt(1 - height * height);
        cloud.push_back(radius * Body{ring * std::cos(turn), ring * std::sin(turn), height});
    }
    return cloud;
}

Body pull_on(const std::vector<Body>& all, std::size_t which) {
    Body sum{0, 0, 0};
    const Body at = all[which];
    for (const Body& other : all) {
        const double dx = other.x - at.x, dy = other.y - at.y, dz = other.z - at.z;
        const double squared = dx * dx + dy * dy + dz * dz + kSoftening;
        const double strength = 1 / (squared * std::sqrt(squared) * static_cast<double>(all.size()));
        sum = sum + strength * Body{dx, dy, dz};
    }
    return sum;
}

// Returns the number of bodies for each rank, in proportion to its speed and at least one. The sum is
// `bodies`.
std::vector<int> shares(const std::vector<double>& speeds, int bodies) {
    const double total = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    const int spare = bodies - static_cast<int>(speeds.size());
    std::vector<int> counts;
    double until = 0;
    int given = 0;
    for (const double speed : speeds) {
        until += speed / total;
        const int upto = static_cast<int>(std::lround(until * spare));
        counts.push_back(1 + upto - given);
        given = upto;
    }
    return counts;
}

// The bodies on the ranks of one communicator. Every rank has all positions, and the velocities of its own
// bodies.
class Simulation {
  public:
    Simulation(MPI_Comm comm, const Options& options) : comm_(comm), options_(options) {
        MPI_Comm_rank(comm_, &rank_);
        MPI_Comm_size(comm_, &size_);
        positions_ = initial_cloud(options.bodies);
        velocities_.assign(positions_.size(), {0, 0, 0});
    }

    // Runs all steps and distributes the bodies anew in between. Returns the seconds that this takes.
    double run() {
        MPI_Barrier(comm_);
        const double start = MPI_Wtime();
        deal(gather(sample()));
        double busy = 0;
        int measured = 0;
        for (int step = 1; step <= options_.steps; ++step) {
            busy += advance();
            share_all(positions_);
            ++measured;
            if (step % options_.rebalance == 0 && step < options_.steps) {
                deal(gather(measured * counts_[rank_] / std::max(busy, 1e-9)));
                busy = 0;
                measured = 0;
            }
        }
        double seconds = MPI_Wtime() - start;
        MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, comm_);
        return seconds;
    }

    const std::vector<Body>& positions() const { return positions_; }
    const std::vector<int>& counts() const { return counts_; }

  private:
    // Computes one step of this rank's bodies, and returns the seconds that this takes.
    double advance() {
        const double start = MPI_Wtime();
        const std::size_t begin = static_cast<std::size_t>(offsets_[rank_]);
        std::vector<Body> moved;
        for (std::size_t i = begin; i < begin + static_cast<std::size_t>(counts_[rank_]); ++i) {
            velocities_[i] = velocities_[i] + kTimeStep * pull_on(positions_, i);
            moved.push_back(positions_[i] + kTimeStep * velocities_[i]);
        }
        std::copy(moved.begin(), moved.end(), positions_.begin() + offsets_[rank_]);
        return MPI_Wtime() - start;
    }

    void share_all(std::vector<Body>& bodies) {
        std::vector<int> counts = counts_, offsets = offsets_;
        for (auto* numbers : {&counts, &offsets})
            for (int& number : *numbers)
                number *= 3;
        MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, bodies.data(), counts.data(), offsets.data(),
                       MPI_DOUBLE, comm_);
    }

    // Returns this rank's bodies per second, measured for a short time while all ranks work. The first shares
    // depend on it.
    double sample() const {
        const double start = MPI_Wtime();
        double seconds = 0, pulls = 0;
        std::size_t bodies = 0;
        for (; seconds < kSampleSeconds; seconds = MPI_Wtime() - start)
            pulls += pull_on(positions_, bodies++ % positions_.size()).x;
        // The result depends on the sum, so the compiler cannot leave the computation out.
        return std::isnan(pulls) ? 0 : static_cast<double>(bodies) / seconds;
    }

    std::vector<double> gather(double speed) {
        std::vector<double> speeds(static_cast<std::size_t>(size_));
        MPI_Allgather(&speed, 1, MPI_DOUBLE, speeds.data(), 1, MPI_DOUBLE, comm_);
        return speeds;
    }

    void deal(const std::vector<double>& speeds) {
        if (!counts_.empty()) share_all(velocities_);  // bodies get new owners, which need their velocities
        counts_ = shares(speeds, options_.bodies);
        offsets_.assign(counts_.size(), 0);
        std::partial_sum(counts_.begin(), counts_.end() - 1, offsets_.begin() + 1);
    }

    MPI_Comm comm_;
    Options options_;
    int rank_ = 0, size_ = 1;
    std::vector<Body> positions_, velocities_;
    std::vector<int> counts_, offsets_;
};

double largest_difference(const std::vector<Body>& a, const std::vector<Body>& b) {
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        largest = std::max(
            {largest, std::abs(a[i].x - b[i].x), std::abs(a[i].y - b[i].y), std::abs(a[i].z - b[i].z)});
    return largest;
}

// Returns how far the centre of the cloud has moved. It should not move, because each pair of bodies pulls
// with equal strength.
double drift(const std::vector<Body>& now) {
    const std::vector<Body> before = initial_cloud(static_cast<int>(now.size()));
    Body moved{0, 0, 0};
    for (std::size_t i = 0; i < now.size(); ++i)
        moved = moved + (1.0 / static_cast<double>(now.size())) * (now[i] + -1.0 * before[i]);
    return std::max({std::abs(moved.x), std::abs(moved.y), std::abs(moved.z)});
}

// Rank 0 prints every rank's kind and its last number of bodies.
void print_shares(const offpath_device_ranks_t& ranks, const std::vector<int>& counts, const World& world) {
    const int mine[2] = {ranks.is_device, ranks.node};
    std::vector<int> all(2 * static_cast<std::size_t>(world.ranks));
    std::vector<char> names(OFFPATH_ARCHITECTURE_MAX * static_cast<std::size_t>(world.ranks));
    MPI_Gather(mine, 2, MPI_INT, all.data(), 2, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Gather(ranks.architecture, OFFPATH_ARCHITECTURE_MAX, MPI_CHAR, names.data(), OFFPATH_ARCHITECTURE_MAX,
               MPI_CHAR, 0, MPI_COMM_WORLD);
    if (world.rank != 0) return;
    const int bodies = std::accumulate(counts.begin(), counts.end(), 0);
    for (int rank = 0; rank < world.ranks; ++rank)
        std::printf("rank %d: %s of node %d, %s: %d bodies, %.1f %%\n", rank,
                    all[2 * rank] != 0 ? "device" : "host", all[2 * rank + 1],
                    names.data() + rank * OFFPATH_ARCHITECTURE_MAX, counts[rank],
                    100.0 * counts[rank] / bodies);
}

int run(const Options& options, const World& world) {
    offpath_device_ranks_t ranks{};
    ranks.struct_size = sizeof ranks;
    if (offpath_device_ranks_split(MPI_COMM_WORLD, &ranks) != OFFPATH_OK)
        throw mpi_support::UsageError(offpath_device_ranks_problem());
    if (options.bodies < world.ranks) throw mpi_support::UsageError("there must be as many bodies as ranks");

    double hosts_seconds = 0;
    std::vector<Body> expected(static_cast<std::size_t>(options.bodies));
    if (!ranks.is_device) {
        Simulation hosts(ranks.kind_comm, options);
        hosts_seconds = hosts.run();
        expected = hosts.positions();
    }
    // The first host. Every rank compares its positions with those of this rank.
    int root = ranks.is_device ? world.ranks : world.rank;
    MPI_Allreduce(MPI_IN_PLACE, &root, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Bcast(&hosts_seconds, 1, MPI_DOUBLE, root, MPI_COMM_WORLD);
    MPI_Bcast(expected.data(), 3 * options.bodies, MPI_DOUBLE, root, MPI_COMM_WORLD);

    Simulation together(MPI_COMM_WORLD, options);
    const double seconds = together.run();
    const double difference = mpi_support::max_over_ranks(largest_difference(expected, together.positions()));
    const double moved = drift(together.positions());
    const bool verified = mpi_support::all_ranks_agree(difference < kAgreement && moved < kAgreement);
    print_shares(ranks, together.counts(), world);
    if (world.rank == 0) {
        std::printf("hosts alone (%d): %.3f s; with devices (%d more): %.3f s, %.2f times as fast\n",
                    ranks.hosts, hosts_seconds, ranks.devices, seconds, hosts_seconds / seconds);
        if (!verified)
            std::fprintf(
                stderr, "example-device-ranks-share: wrong: positions differ by %g, the centre moved by %g\n",
                difference, moved);
        mpi_support::write_json_line({{"bodies", options.bodies},
                                      {"steps", options.steps},
                                      {"hosts", ranks.hosts},
                                      {"devices", ranks.devices},
                                      {"hosts_only_s", hosts_seconds},
                                      {"shared_s", seconds},
                                      {"verified", verified}},
                                     "-");
    }
    offpath_device_ranks_free(&ranks);
    return verified ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    cli::App app("Hosts and devices share the work on N bodies by their measured speed.",
                 "example-device-ranks-share");
    Options options;
    app.add_option("--bodies", options.bodies, "Bodies")
        ->check(cli::Range(2, 1000000))
        ->capture_default_str();
    app.add_option("--steps", options.steps, "Time steps")
        ->check(cli::Range(1, 1000000))
        ->capture_default_str();
    app.add_option("--rebalance", options.rebalance, "Steps from one dealing out of the bodies to the next")
        ->check(cli::Range(1, 1000000))
        ->capture_default_str();
    return mpi_support::run_mpi_program(argc, argv, app,
                                        [&](const World& world) { return run(options, world); });
}
