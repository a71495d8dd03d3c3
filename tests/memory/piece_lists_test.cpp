// How lists of pieces of another process's memory become system calls.
#include "memory/piece_lists.h"
#include "host_process.h"
#include "places.h"

#include <gtest/gtest.h>

namespace offpath::memory::test {
namespace {

constexpr std::size_t most_listed = PieceLists::most_entries;

std::vector<ForeignPiece> pieces_of(const Places& places, std::uint64_t base, std::byte* local) {
    std::vector<ForeignPiece> pieces;
    for (std::size_t i = 0; i < places.at.size(); ++i) {
        pieces.push_back({base + places.at[i], local, places.bytes[i]});
        local += places.bytes[i];
    }
    return pieces;
}

// Acts like the system call. `limit` bytes of our own memory take the place of the other process's.
std::size_t call(const PieceLists& lists, bool writes, std::size_t limit) {
    std::size_t done = 0, there = 0, inside = 0;
    for (const iovec& here : lists.here()) {
        for (std::size_t i = 0; i < here.iov_len && done < limit; ++i, ++done) {
            if (inside == lists.there()[there].iov_len) {
                ++there;
                inside = 0;
            }
            auto* const ours = static_cast<std::byte*>(here.iov_base) + i;
            auto* const theirs = static_cast<std::byte*>(lists.there()[there].iov_base) + inside++;
            (writes ? *theirs : *ours) = writes ? *ours : *theirs;
        }
    }
    return done;
}

std::size_t bytes_in(std::span<const iovec> list) {
    return std::accumulate(list.begin(), list.end(), std::size_t{0},
                           [](std::size_t sum, const iovec& each) { return sum + each.iov_len; });
}

class Counts : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Pieces, Counts,
                         testing::Values(0, 1, 2, most_listed - 1, most_listed, most_listed + 1, 100000));

TEST_P(Counts, EveryByteMovesOnceWhateverACallLeaves) {
    std::mt19937 random(static_cast<unsigned>(GetParam()) + 1);
    for (const bool shuffled : {false, true}) {
        for (const std::size_t longest : {std::size_t{8}, std::size_t{200}}) {
            const Places places(random, GetParam(), GetParam() > 10000 ? 8 : longest, shuffled);
            const std::vector<std::byte> before = pattern_bytes(1, places.extent);
            const std::span<const std::byte> all(before);
            std::vector<std::byte> theirs = before, ours(places.sum);
            const auto base = reinterpret_cast<std::uint64_t>(theirs.data());
            for (const bool writes : {false, true}) {
                const auto pieces = pieces_of(places, base, ours.data());
                if (writes) std::ranges::fill(theirs, std::byte{0});
                PieceLists lists(pieces, !writes);
                while (!lists.over()) {
                    lists.fill();
                    ASSERT_LE(lists.here().size(), most_listed);
                    ASSERT_LE(lists.there().size(), most_listed);
                    const std::size_t bytes = bytes_in(lists.here());
                    ASSERT_EQ(bytes, bytes_in(lists.there()));
                    ASSERT_GT(bytes, 0u);
                    ASSERT_LE(bytes, PieceLists::most_bytes);
                    const std::size_t limit = random() % 3 == 0 ? 1 + random() % bytes : bytes;
                    lists.moved(call(lists, writes, limit));
                }
                std::size_t at = 0;
                std::vector<std::byte> expected(places.extent);
                for (std::size_t i = 0; i < pieces.size(); ++i) {
                    const auto piece = std::span(ours).subspan(at, places.bytes[i]);
                    const auto place = static_cast<std::ptrdiff_t>(places.at[i]);
                    ASSERT_TRUE(std::ranges::equal(piece, all.subspan(places.at[i], piece.size()))) << i;
                    std::ranges::copy(piece, expected.begin() + place);
                    at += piece.size();
                }
                if (!writes) continue;
                ASSERT_EQ(theirs, expected) << "bytes beside the pieces";
            }
        }
    }
}

std::size_t calls_for(std::span<const ForeignPiece> pieces, bool joins) {
    std::size_t calls = 0;
    for (PieceLists lists(pieces, joins); !lists.over(); ++calls) {
        lists.fill();
        lists.moved(bytes_in(lists.here()));
    }
    return calls;
}

TEST_P(Counts, TakeOneCallForAsManyAsTheSystemAccepts) {
    const std::size_t count = GetParam();
    std::vector<std::byte> local(count * 4);
    std::vector<ForeignPiece> far, near, side_by_side;
    for (std::size_t i = 0; i < count; ++i) {
        far.push_back({page + i * page, local.data() + 4 * i, 4});
        near.push_back({page + i * 8, local.data() + 4 * i, 4});
        side_by_side.push_back({page + i * 4, local.data() + 4 * i, 4});
    }
    const std::size_t full = (count + most_listed - 1) / most_listed;
    EXPECT_EQ(calls_for(far, true), full);
    EXPECT_EQ(calls_for(far, false), full);
    EXPECT_EQ(calls_for(near, false), full);
    // Every gap needs an entry of its own here.
    EXPECT_EQ(calls_for(near, true), (count + most_listed / 2 - 1) / (most_listed / 2));
    EXPECT_EQ(calls_for(side_by_side, false),
              (4 * count + PieceLists::most_bytes - 1) / PieceLists::most_bytes);
}

TEST(PieceLists, JoinOnlyOverPagesThatAPieceTouches) {
    std::byte local[4];
    const auto entries = [&](std::uint64_t first, std::uint64_t second) {
        const ForeignPiece pieces[] = {{first, local, 1}, {second, local + 1, 1}};
        PieceLists lists(pieces, true);
        lists.fill();
        return lists.there().size();
    };
    EXPECT_EQ(entries(10 * page, 10 * page + 100), 1u);
    EXPECT_EQ(entries(11 * page - 1, 11 * page + 100), 1u) << "from one page to the next";
    EXPECT_EQ(entries(11 * page + 100, 10 * page), 2u) << "backwards";
    EXPECT_EQ(entries(10 * page, 10 * page + PieceLists::most_gap_bytes + 2), 2u);
    EXPECT_EQ(entries(10 * page, 12 * page), 2u);
}

}  // namespace
}  // namespace offpath::memory::test
