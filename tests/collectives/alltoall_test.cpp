#include "collectives/collectives.h"
#include "collectives/selection.h"
#include "team_run.h"

#include <gtest/gtest.h>

namespace offpath::collectives {
namespace {

using namespace offpath::testing;

// Counts and displacements of all pairs. Counts start at 0, blocks have gaps between them and are not in rank
// order.
class Exchange {
  public:
    Exchange(std::uint32_t size, bool uneven) : size_(size), uneven_(uneven), ranks_(size) {
        for (std::uint32_t rank = 0; rank < size; ++rank) {
            Layout& layout = ranks_[rank];
            layout.send_bytes.resize(size);
            layout.send_offsets.resize(size);
            layout.recv_bytes.resize(size);
            layout.recv_offsets.resize(size);
            for (std::uint32_t i = 0; i < size; ++i) {
                const std::uint32_t peer = uneven ? size - 1 - i : i;
                layout.send_bytes[peer] = bytes(rank, peer);
                layout.recv_bytes[peer] = bytes(peer, rank);
                layout.send_offsets[peer] = layout.send_end;
                layout.recv_offsets[peer] = layout.recv_end;
                layout.send_end += layout.send_bytes[peer] + (uneven ? peer % 3 : 0);
                layout.recv_end += layout.recv_bytes[peer] + (uneven ? rank % 2 : 0);
            }
        }
    }
    std::uint64_t bytes(std::uint32_t from, std::uint32_t to) const {
        return uneven_ ? ((from * 7 + to * 5) % 4 == 0 ? 0 : (from + 2 * to) % 9) : 5;
    }
    VectorArgs args(std::uint32_t rank) const {
        const Layout& layout = ranks_[rank];
        return {layout.send_bytes, layout.send_offsets, layout.recv_bytes, layout.recv_offsets};
    }

    bool check(const Build& build) const {
        return check_team(
            size_, build,
            [&](std::uint32_t rank, std::uint32_t run) {
                Buffer send(ranks_[rank].send_end), recv(ranks_[rank].recv_end, std::byte{0xEE});
                for (std::uint32_t peer = 0; peer < size_; ++peer)
                    for (std::uint64_t i = 0; i < bytes(rank, peer); ++i)
                        send[ranks_[rank].send_offsets[peer] + i] = datum(run, rank, peer, i);
                return RankBuffers{send, recv};
            },
            [&](std::uint32_t rank, std::uint32_t run, const RankBuffers& buffers) {
                Buffer expected(ranks_[rank].recv_end, std::byte{0xEE});
                for (std::uint32_t peer = 0; peer < size_; ++peer)
                    for (std::uint64_t i = 0; i < bytes(peer, rank); ++i)
                        expected[ranks_[rank].recv_offsets[peer] + i] = datum(run, peer, rank, i);
                return buffers[1] == expected;
            });
    }

  private:
    struct Layout {
        std::vector<std::uint64_t> send_bytes, send_offsets, recv_bytes, recv_offsets;
        std::uint64_t send_end = 0, recv_end = 0;
    };
    std::uint32_t size_;
    bool uneven_;
    std::vector<Layout> ranks_;
};

TEST(Alltoallv, LinearMovesEveryBlockInTeamsOf1To64) {
    for (const std::uint32_t size : team_sizes()) {
        const Exchange exchange(size, true);
        ASSERT_TRUE(exchange.check([&](std::uint32_t rank) {
            return alltoallv_linear({rank, size}, exchange.args(rank), 1 + size % 5);
        })) << "team of "
            << size;
    }
}

TEST(Alltoallv, PairwiseMovesEveryBlockInTeamsOf1To64) {
    for (const std::uint32_t size : team_sizes()) {
        const Exchange exchange(size, true);
        ASSERT_TRUE(exchange.check([&](std::uint32_t rank) {
            return alltoallv_pairwise({rank, size}, exchange.args(rank));
        })) << "team of "
            << size;
    }
}

TEST(Alltoall, BothAlgorithmsMoveEqualBlocksInTeamsOf1To64) {
    for (const std::uint32_t size : team_sizes()) {
        const Exchange exchange(size, false);
        ASSERT_TRUE(exchange.check([&](std::uint32_t rank) {
            return alltoall_linear({rank, size}, 5, 4);
        })) << "linear, team of "
            << size;
        ASSERT_TRUE(exchange.check([&](std::uint32_t rank) {
            return alltoall_pairwise({rank, size}, 5);
        })) << "pairwise, team of "
            << size;
    }
}

TEST(Alltoall, KeepsToItsCredits) {
    for (std::uint32_t credits : {1u, 2u, 4u, 7u, 100u}) {
        const std::uint32_t most = most_sends_in_flight(
            12,
            [&](std::uint32_t rank) {
                return alltoall_linear({rank, 12}, 3, credits);
            },
            40);
        EXPECT_EQ(most, std::min(credits, 11u));
    }
    EXPECT_EQ(most_sends_in_flight(
                  12,
                  [](std::uint32_t rank) {
                      return alltoall_linear({rank, 12}, 3, 0);
                  },
                  5),
              1u);
    EXPECT_EQ(most_sends_in_flight(
                  12,
                  [](std::uint32_t rank) {
                      return alltoall_pairwise({rank, 12}, 3);
                  },
                  5),
              1u);
}

TEST(Alltoall, MakesNoOpsForBlocksOfNoBytes) {
    EXPECT_TRUE(alltoall_linear({1, 4}, 0, 4).ops().empty());
    EXPECT_TRUE(alltoall_pairwise({1, 4}, 0).ops().empty());
}

}  // namespace
}  // namespace offpath::collectives
