// Programs that compute most of the time.
#include <algorithm>
#include <cmath>
#include <utility>

#include "common/compute.h"
#include "patterns.h"

namespace programs {

namespace {

constexpr std::uint64_t kUnits = 100;  // of bench::compute(), for one task

}  // namespace

bool compute_only(const World& world, int steps) {
    for (int step = 0; step < steps; ++step)
        bench::compute(kUnits);
    int done = 1, all = 0;
    MPI_Reduce(&done, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    return world.rank != 0 || all == world.ranks;
}

// Rank 0 gives out tasks to whoever asks first.
bool tasks(const World& world, int steps) {
    constexpr int kTag = 5, kNone = -1;
    if (world.ranks == 1) return compute_only(world, steps);
    if (world.rank == 0) {
        long long sum = 0;
        for (int given = 0, ended = 0; ended < world.ranks - 1; ++given) {
            int done = 0;
            MPI_Status status;
            MPI_Recv(&done, 1, MPI_INT, MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &status);
            sum += done;
            const int next = given < steps ? given + 1 : kNone;
            if (next == kNone) ++ended;
            MPI_Send(&next, 1, MPI_INT, status.MPI_SOURCE, kTag, MPI_COMM_WORLD);
        }
        return sum == static_cast<long long>(steps) * (steps + 1) / 2;
    }
    for (int task = 0; task != kNone;) {
        MPI_Send(&task, 1, MPI_INT, 0, kTag, MPI_COMM_WORLD);
        MPI_Recv(&task, 1, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (task != kNone) bench::compute(kUnits);
    }
    return true;
}

// All pairs of particles: blocks of them travel around a ring while each rank computes with the block it has.
bool particle_ring(const World& world, int steps) {
    constexpr int kBodies = 1500;
    const int next = (world.rank + 1) % world.ranks, before = (world.rank + world.ranks - 1) % world.ranks;
    std::vector<double> mine(kBodies), held(kBodies), coming(kBodies);
    bool right = true;
    for (int step = 0; step < steps; ++step) {
        for (int i = 0; i < kBodies; ++i)
            mine[static_cast<std::size_t>(i)] = world.rank * kBodies + i;
        held = mine;
        double force = 0, sum = 0;
        for (int turn = 0; turn < world.ranks; ++turn) {
            MPI_Request requests[2];
            MPI_Irecv(coming.data(), kBodies, MPI_DOUBLE, before, 6, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(held.data(), kBodies, MPI_DOUBLE, next, 6, MPI_COMM_WORLD, &requests[1]);
            for (const double a : mine)
                for (const double b : held)
                    force += 1 / (1 + (a - b) * (a - b));
            for (const double b : held)
                sum += b;
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            std::swap(held, coming);
        }
        const double bodies = static_cast<double>(kBodies) * world.ranks;
        right = right && sum == bodies * (bodies - 1) / 2 && std::isfinite(force);
    }
    return right;
}

bool start_and_end(const World& world, int steps) {
    for (int step = 0; step < steps; ++step)
        MPI_Barrier(MPI_COMM_WORLD);
    return world.rank < world.ranks;
}

}  // namespace programs
