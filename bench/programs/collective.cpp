// Programs that spend their communication in blocking collectives of large buffers.
#include <algorithm>
#include <cstdint>
#include <numeric>

#include "patterns.h"

namespace programs {

namespace {

std::vector<int> starts_of(const std::vector<int>& counts) {
    std::vector<int> starts(counts.size());
    std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0);
    return starts;
}

std::uint32_t scrambled(std::uint32_t value) {
    value = (value ^ (value >> 16)) * 0x7feb352dU;
    value = (value ^ (value >> 15)) * 0x846ca68bU;
    return value ^ (value >> 16);
}

}  // namespace

// A square matrix in rows, transposed again and again.
bool transpose(const World& world, int steps) {
    const int block = std::max(1, 1024 / world.ranks), order = block * world.ranks;
    const auto at = [](int row, int width, int column) {
        return static_cast<std::size_t>(row) * static_cast<std::size_t>(width) +
               static_cast<std::size_t>(column);
    };
    const auto value = [&](int row, int column) { return static_cast<double>(at(row, order, column)); };
    std::vector<double> rows(at(block, order, 0)), sent(rows.size()), received(rows.size());
    for (int i = 0; i < block; ++i)
        for (int j = 0; j < order; ++j)
            rows[at(i, order, j)] = value(world.rank * block + i, j);
    for (int step = 0; step < steps; ++step) {
        for (int to = 0; to < world.ranks; ++to)
            for (int i = 0; i < block; ++i)
                for (int j = 0; j < block; ++j)
                    sent[at(to * block + j, block, i)] = rows[at(i, order, to * block + j)];
        MPI_Alltoall(sent.data(), block * block, MPI_DOUBLE, received.data(), block * block, MPI_DOUBLE,
                     MPI_COMM_WORLD);
        for (int from = 0; from < world.ranks; ++from)
            for (int i = 0; i < block; ++i)
                std::copy_n(&received[at(from * block + i, block, 0)], block,
                            &rows[at(i, order, from * block)]);
    }
    for (int i = 0; i < block; ++i)
        for (int j = 0; j < order; ++j) {
            const int row = world.rank * block + i;
            if (rows[at(i, order, j)] != (steps % 2 ? value(j, row) : value(row, j))) return false;
        }
    return true;
}

// Keys are spread evenly, so the ranks split their range evenly.
bool sample_sort(const World& world, int steps) {
    constexpr std::uint32_t kKeys = 1 << 17;
    const auto ranks = static_cast<std::uint64_t>(world.ranks);
    std::vector<std::uint32_t> keys(kKeys), sorted;
    for (int step = 0; step < steps; ++step) {
        std::uint64_t sums[2] = {0, 0}, totals[2] = {0, 0};
        for (std::uint32_t i = 0; i < kKeys; ++i) {
            keys[i] = scrambled(i + kKeys * static_cast<std::uint32_t>(world.rank + step * world.ranks));
            sums[0] += keys[i];
        }
        std::sort(keys.begin(), keys.end());
        std::vector<int> sent(ranks), received(ranks);
        for (const std::uint32_t key : keys)
            ++sent[(key * ranks) >> 32];
        MPI_Alltoall(sent.data(), 1, MPI_INT, received.data(), 1, MPI_INT, MPI_COMM_WORLD);
        sorted.resize(static_cast<std::size_t>(std::accumulate(received.begin(), received.end(), 0)));
        MPI_Alltoallv(keys.data(), sent.data(), starts_of(sent).data(), MPI_UINT32_T, sorted.data(),
                      received.data(), starts_of(received).data(), MPI_UINT32_T, MPI_COMM_WORLD);
        std::sort(sorted.begin(), sorted.end());
        for (const std::uint32_t key : sorted)
            sums[1] += key;
        MPI_Allreduce(sums, totals, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        if (totals[0] != totals[1]) return false;
        if (!sorted.empty() && (sorted.front() * ranks) >> 32 != static_cast<std::uint64_t>(world.rank))
            return false;
    }
    return true;
}

// One rank gives out a large state, the others work on their part of it and hand that back.
bool broadcast_gather(const World& world, int steps) {
    const int part = std::max(1, (1 << 18) / world.ranks), all = part * world.ranks;
    std::vector<double> state(static_cast<std::size_t>(all)), mine(static_cast<std::size_t>(part));
    for (int step = 0; step < steps; ++step) {
        MPI_Bcast(state.data(), all, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        for (int i = 0; i < part; ++i)
            mine[static_cast<std::size_t>(i)] = state[static_cast<std::size_t>(world.rank * part + i)] + 1;
        MPI_Gather(mine.data(), part, MPI_DOUBLE, state.data(), part, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
    const auto is = [](double wanted) { return [wanted](double value) { return value == wanted; }; };
    if (world.rank == 0) return std::all_of(state.begin(), state.end(), is(steps));
    return std::all_of(mine.begin(), mine.end(), is(steps));
}

}  // namespace programs
