#include "collectives/collectives.h"
#include "reduction_checks.h"

#include <gtest/gtest.h>

#include <numeric>

namespace offpath::collectives {
namespace {

using namespace offpath::testing;

using BuildReduce =
    std::function<Schedule(TeamShape team, std::uint32_t root, std::uint64_t bytes, bool in_place)>;

bool check_reduce(std::uint32_t size, std::uint32_t root, std::uint64_t count, bool in_place,
                  const BuildReduce& build) {
    return check_team(
        size,
        [&](std::uint32_t rank) {
            return build({rank, size}, root, count * 4, in_place && rank == root);
        },
        [&](std::uint32_t rank, std::uint32_t run) {
            RankBuffers buffers{operands(run, rank, 0, count)};
            if (rank == root && !in_place) buffers.push_back(Buffer(count * 4, std::byte{0xEE}));
            return buffers;
        },
        [&](std::uint32_t rank, std::uint32_t run, const RankBuffers& buffers) {
            if (rank != root) return buffers[0] == operands(run, rank, 0, count);
            return buffers[in_place ? 0 : 1] == sums(run, size, 0, count);
        });
}

void check_reduces(const BuildReduce& build) {
    for (const std::uint32_t size : team_sizes())
        for (std::uint32_t root : {0u, size / 2, size - 1}) {
            if (size > 9 && root == 0) continue;
            for (std::uint64_t count : {0u, 7u, size <= 9 ? 16 * 40 * size + 5 : 16 * size + 5})
                ASSERT_TRUE(check_reduce(size, root, count, size % 2 == root % 2, build))
                    << "team of " << size << ", root " << root << ", " << count << " elements";
        }
}

TEST(Reduce, BinomialInTeamsOf1To64) {
    check_reduces([](TeamShape team, std::uint32_t root, std::uint64_t bytes, bool in_place) {
        return reduce_binomial(team, root, bytes, integer_sum, in_place);
    });
}

TEST(Reduce, ChainInTeamsOf1To64) {
    check_reduces([](TeamShape team, std::uint32_t root, std::uint64_t bytes, bool in_place) {
        return reduce_chain(team, root, bytes, integer_sum, in_place, 64);
    });
}

TEST(Reduce, RingInTeamsOf1To64) {
    check_reduces([](TeamShape team, std::uint32_t root, std::uint64_t bytes, bool in_place) {
        return reduce_ring(team, root, bytes, integer_sum, in_place, 64);
    });
}

using BuildScatter = std::function<Schedule(TeamShape team, std::span<const std::uint64_t> bytes)>;

void check_reduce_scatters(const BuildScatter& build) {
    for (const std::uint32_t size : team_sizes())
        for (int shape = 0; shape < 4; ++shape) {
            std::vector<std::uint64_t> counts(size), bytes(size), offsets(size);
            for (std::uint32_t rank = 0; rank < size; ++rank)
                counts[rank] = shape == 0   ? 3
                               : shape == 1 ? (rank % 3 == 0 ? 0 : rank * 13 % 90)
                               : shape == 2 ? (rank == size / 2 ? 500 : 0)
                                            : (size <= 9 ? 16 * 40 : 20);
            std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), std::uint64_t{0});
            for (std::uint32_t rank = 0; rank < size; ++rank)
                bytes[rank] = 4 * counts[rank];
            const std::uint64_t total = offsets.back() + counts.back();
            ASSERT_TRUE(check_team(
                size,
                [&](std::uint32_t rank) {
                    return build({rank, size}, bytes);
                },
                [&](std::uint32_t rank, std::uint32_t run) {
                    return RankBuffers{operands(run, rank, 0, total), Buffer(bytes[rank], std::byte{0xEE})};
                },
                [&](std::uint32_t rank, std::uint32_t run, const RankBuffers& buffers) {
                    return buffers[0] == operands(run, rank, 0, total) &&
                           buffers[1] == sums(run, size, offsets[rank], counts[rank]);
                }))
                << "team of " << size << ", shape " << shape;
        }
}

TEST(ReduceScatter, RingInTeamsOf1To64) {
    check_reduce_scatters([](TeamShape team, std::span<const std::uint64_t> bytes) {
        return reduce_scatter_ring(team, bytes, integer_sum, 64);
    });
}

TEST(ReduceScatter, PairwiseInTeamsOf1To64) {
    check_reduce_scatters([](TeamShape team, std::span<const std::uint64_t> bytes) {
        return reduce_scatter_pairwise(team, bytes, integer_sum, 64);
    });
}

using BuildScan = std::function<Schedule(TeamShape team, std::uint64_t bytes, bool in_place, bool exclusive)>;

void check_scans(const BuildScan& build) {
    for (const std::uint32_t size : team_sizes())
        for (bool exclusive : {false, true})
            for (bool in_place : {false, true})
                for (std::uint64_t count : {0u, 5u, (size <= 9 ? 16u * 40 : 16u) + 3}) {
                    const auto result = [&](std::uint32_t rank, std::uint32_t run) {
                        return sums(run, exclusive ? rank : rank + 1, 0, count);
                    };
                    ASSERT_TRUE(check_team(
                        size,
                        [&](std::uint32_t rank) {
                            return build({rank, size}, count * 4, in_place, exclusive);
                        },
                        [&](std::uint32_t rank, std::uint32_t run) {
                            RankBuffers buffers{operands(run, rank, 0, count)};
                            if (!in_place) buffers.push_back(Buffer(count * 4, std::byte{0xEE}));
                            return buffers;
                        },
                        [&](std::uint32_t rank, std::uint32_t run, const RankBuffers& buffers) {
                            const Buffer mine = operands(run, rank, 0, count);
                            if (!in_place && buffers[0] != mine) return false;
                            if (exclusive && rank == 0)
                                return in_place ? buffers[0] == mine
                                                : buffers[1] == Buffer(count * 4, std::byte{0xEE});
                            return buffers[in_place ? 0 : 1] == result(rank, run);
                        }))
                        << "team of " << size << (exclusive ? ", exclusive" : "")
                        << (in_place ? ", in place, " : ", ") << count << " elements";
                }
}

TEST(Scan, RecursiveDoublingInTeamsOf1To64) {
    check_scans([](TeamShape team, std::uint64_t bytes, bool in_place, bool exclusive) {
        return scan_recursive_doubling(team, bytes, integer_sum, in_place, exclusive);
    });
}

TEST(Scan, ChainInTeamsOf1To64) {
    check_scans([](TeamShape team, std::uint64_t bytes, bool in_place, bool exclusive) {
        return scan_chain(team, bytes, integer_sum, in_place, exclusive, 64);
    });
}

}  // namespace
}  // namespace offpath::collectives
