#include "collectives/collectives.h"
#include "collectives/extent.h"
#include "team_run.h"

#include <gtest/gtest.h>

#include <random>

namespace offpath::collectives {
namespace {

using namespace offpath::testing;

// Every block has its own size. In the root's buffer the blocks are not in rank order.
struct RootedBlocks {
    RootedBlocks(std::uint32_t size, bool equal) : bytes(size), offsets(size) {
        std::uint64_t at = equal ? 0 : 2;
        for (std::uint32_t i = 0; i < size; ++i) {
            const std::uint32_t rank = equal ? i : size - 1 - i;
            bytes[rank] = equal ? 6 : rank % 4 == 1 ? 0 : rank * 5 % 19;
            offsets[rank] = at;
            at += bytes[rank] + (equal ? 0 : rank % 2);
        }
    }
    std::uint64_t total() const { return extent(bytes, offsets); }
    void place(Buffer& buffer, std::uint32_t rank, std::uint32_t run) const {
        for (std::uint64_t i = 0; i < bytes[rank]; ++i)
            buffer[offsets[rank] + i] = datum(run, rank, 0, i);
    }
    Buffer own(std::uint32_t rank, std::uint32_t run) const {
        Buffer buffer(bytes[rank]);
        for (std::uint64_t i = 0; i < bytes[rank]; ++i)
            buffer[i] = datum(run, rank, 0, i);
        return buffer;
    }
    std::vector<std::uint64_t> bytes, offsets;
};

using BuildRooted =
    std::function<Schedule(TeamShape team, std::uint32_t root, const RootedBlocks& blocks, bool in_place)>;

bool check_gather(const RootedBlocks& blocks, std::uint32_t root, bool in_place, const BuildRooted& build) {
    const auto size = static_cast<std::uint32_t>(blocks.bytes.size());
    return check_team(
        size,
        [&](std::uint32_t rank) {
            return build({rank, size}, root, blocks, in_place && rank == root);
        },
        [&](std::uint32_t rank, std::uint32_t run) {
            if (rank != root) return RankBuffers{blocks.own(rank, run)};
            Buffer recv(blocks.total(), std::byte{0xEE});
            if (!in_place) return RankBuffers{blocks.own(rank, run), recv};
            blocks.place(recv, root, run);
            return RankBuffers{recv};
        },
        [&](std::uint32_t rank, std::uint32_t run, const RankBuffers& buffers) {
            if (rank != root) return buffers[0] == blocks.own(rank, run);
            Buffer expected(blocks.total(), std::byte{0xEE});
            for (std::uint32_t from = 0; from < size; ++from)
                blocks.place(expected, from, run);
            return buffers[in_place ? 0 : 1] == expected;
        });
}

bool check_scatter(const RootedBlocks& blocks, std::uint32_t root, bool in_place, const BuildRooted& build) {
    const auto size = static_cast<std::uint32_t>(blocks.bytes.size());
    const auto all = [&](std::uint32_t run) {
        Buffer send(blocks.total(), std::byte{0xDD});
        for (std::uint32_t to = 0; to < size; ++to)
            blocks.place(send, to, run);
        return send;
    };
    return check_team(
        size,
        [&](std::uint32_t rank) {
            return build({rank, size}, root, blocks, in_place && rank == root);
        },
        [&](std::uint32_t rank, std::uint32_t run) {
            const Buffer recv(blocks.bytes[rank], std::byte{0xEE});
            if (rank != root) return RankBuffers{recv};
            return in_place ? RankBuffers{all(run)} : RankBuffers{all(run), recv};
        },
        [&](std::uint32_t rank, std::uint32_t run, const RankBuffers& buffers) {
            if (rank == root && buffers[0] != all(run)) return false;
            if (rank == root && in_place) return true;
            return buffers[rank == root ? 1 : 0] == blocks.own(rank, run);
        });
}

template <class CheckOne>
void in_teams(bool equal, CheckOne check_one) {
    for (const std::uint32_t size : team_sizes())
        for (std::uint32_t root : {0u, size / 3, size - 1})
            for (bool in_place : {false, true})
                ASSERT_TRUE(check_one(RootedBlocks(size, equal), root, in_place))
                    << "team of " << size << ", root " << root << (in_place ? ", in place" : "");
}

Schedule gather_linear(TeamShape team, std::uint32_t root, const RootedBlocks& blocks, bool in_place) {
    // Arguments that only the root knows are missing on the other ranks.
    const bool is_root = team.rank == root;
    return gatherv_linear(
        team, root, is_root ? 0 : blocks.bytes[team.rank],
        is_root ? std::span<const std::uint64_t>(blocks.bytes) : std::span<const std::uint64_t>(),
        is_root ? std::span<const std::uint64_t>(blocks.offsets) : std::span<const std::uint64_t>(), in_place,
        3);
}

Schedule scatter_linear(TeamShape team, std::uint32_t root, const RootedBlocks& blocks, bool in_place) {
    const bool is_root = team.rank == root;
    return scatterv_linear(
        team, root, is_root ? 0 : blocks.bytes[team.rank],
        is_root ? std::span<const std::uint64_t>(blocks.bytes) : std::span<const std::uint64_t>(),
        is_root ? std::span<const std::uint64_t>(blocks.offsets) : std::span<const std::uint64_t>(), in_place,
        3);
}

TEST(Gather, LinearInTeamsOf1To64) {
    for (bool equal : {false, true})
        in_teams(equal, [](const RootedBlocks& blocks, std::uint32_t root, bool in_place) {
            return check_gather(blocks, root, in_place, gather_linear);
        });
}

TEST(Gather, BinomialInTeamsOf1To64) {
    in_teams(true, [](const RootedBlocks& blocks, std::uint32_t root, bool in_place) {
        return check_gather(blocks, root, in_place,
                            [](TeamShape team, std::uint32_t at, const RootedBlocks& all, bool placed) {
                                return gather_binomial(team, at, all.bytes[0], placed);
                            });
    });
}

TEST(Scatter, LinearInTeamsOf1To64) {
    for (bool equal : {false, true})
        in_teams(equal, [](const RootedBlocks& blocks, std::uint32_t root, bool in_place) {
            return check_scatter(blocks, root, in_place, scatter_linear);
        });
}

TEST(Scatter, BinomialInTeamsOf1To64) {
    in_teams(true, [](const RootedBlocks& blocks, std::uint32_t root, bool in_place) {
        return check_scatter(blocks, root, in_place,
                             [](TeamShape team, std::uint32_t at, const RootedBlocks& all, bool placed) {
                                 return scatter_binomial(team, at, all.bytes[0], placed);
                             });
    });
}

TEST(Gather, BoundsWhatTheRootTakesAtOnce) {
    const RootedBlocks blocks(20, true);
    EXPECT_EQ(most_sends_in_flight(
                  20,
                  [&](std::uint32_t rank) {
                      return scatter_linear({rank, 20}, 4, blocks, false);
                  },
                  20),
              3u);
}

// Random graphs: several edges between two ranks, edges from a rank to itself, edges without bytes, ranks
// without edges.
TEST(Neighbor, ExchangesInTeamsOf1To64) {
    for (const std::uint32_t size : team_sizes()) {
        struct Edges {
            std::vector<std::uint32_t> peers;
            std::vector<std::uint64_t> bytes, offsets, numbers;
            std::uint64_t end = 1;
            void add(std::uint32_t peer, std::uint64_t length, std::uint64_t number) {
                peers.push_back(peer);
                bytes.push_back(length);
                offsets.push_back(end);
                numbers.push_back(number);
                end += length + number % 2;
            }
        };
        std::vector<Edges> out(size), in(size);
        std::mt19937_64 random(size);
        for (std::uint64_t number = 0; number < 4 * size; ++number) {
            const auto from = static_cast<std::uint32_t>(random() % size),
                       to = static_cast<std::uint32_t>(random() % size);
            const std::uint64_t bytes = random() % 4 == 0 ? 0 : random() % 30;
            out[from].add(to, bytes, number);
            in[to].add(from, bytes, number);
        }
        ASSERT_TRUE(check_team(
            size,
            [&](std::uint32_t rank) {
                const Edges &o = out[rank], &i = in[rank];
                return neighbor_alltoallv_linear(
                    {rank, size}, {o.peers, o.bytes, o.offsets, i.peers, i.bytes, i.offsets}, 3);
            },
            [&](std::uint32_t rank, std::uint32_t run) {
                Buffer send(out[rank].end), recv(in[rank].end, std::byte{0xEE});
                for (std::size_t e = 0; e < out[rank].peers.size(); ++e)
                    for (std::uint64_t i = 0; i < out[rank].bytes[e]; ++i)
                        send[out[rank].offsets[e] + i] =
                            datum(run, static_cast<std::uint32_t>(out[rank].numbers[e]), rank, i);
                return RankBuffers{send, recv};
            },
            [&](std::uint32_t rank, std::uint32_t run, const RankBuffers& buffers) {
                Buffer expected(in[rank].end, std::byte{0xEE});
                for (std::size_t e = 0; e < in[rank].peers.size(); ++e)
                    for (std::uint64_t i = 0; i < in[rank].bytes[e]; ++i)
                        expected[in[rank].offsets[e] + i] =
                            datum(run, static_cast<std::uint32_t>(in[rank].numbers[e]), in[rank].peers[e], i);
                return buffers[1] == expected;
            }))
            << "team of " << size;
    }
}

}  // namespace
}  // namespace offpath::collectives
