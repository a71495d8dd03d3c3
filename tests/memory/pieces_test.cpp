// Lists of pieces of another process's memory: how they become system calls, and that the right bytes move.
#include "host_process.h"
#include "memory/cma.h"
#include "memory/piece_lists.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include <gtest/gtest.h>
#include <unistd.h>

namespace offpath::memory::test {
namespace {

constexpr std::size_t most = PieceLists::most_entries;
const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

// Places that do not overlap, of 1 to `longest` bytes, in their order or in any.
struct Places {
    std::vector<std::uint64_t> at;
    std::vector<std::size_t> bytes;
    std::size_t extent = 0, sum = 0;

    Places(std::mt19937& random, std::size_t count, std::size_t longest, bool shuffled) {
        std::vector<std::size_t> order(count);
        std::iota(order.begin(), order.end(), 0);
        std::vector<std::uint64_t> begins;
        std::vector<std::size_t> lengths;
        for (std::size_t i = 0; i < count; ++i) {
            if (random() % 3 > 0) extent += random() % (random() % 50 == 0 ? 3000 : 60);
            // Some over the end of a page.
            if (random() % 40 == 0) extent = (extent / page + 1) * page - random() % 3;
            begins.push_back(extent);
            lengths.push_back(1 + random() % longest);
            extent += lengths.back();
        }
        if (shuffled) std::shuffle(order.begin(), order.end(), random);
        for (const std::size_t i : order) {
            at.push_back(begins[i]);
            bytes.push_back(lengths[i]);
            sum += lengths[i];
        }
    }
};

std::vector<ForeignPiece> pieces_of(const Places& places, std::uint64_t base, std::byte* local) {
    std::vector<ForeignPiece> pieces;
    for (std::size_t i = 0; i < places.at.size(); ++i) {
        pieces.push_back({base + places.at[i], local, places.bytes[i]});
        local += places.bytes[i];
    }
    return pieces;
}

// What the system call does, with memory of our own in the place of the other process's: `limit` bytes of it.
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
INSTANTIATE_TEST_SUITE_P(Pieces, Counts, testing::Values(0, 1, 2, most - 1, most, most + 1, 100000));

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
                    ASSERT_LE(lists.here().size(), most);
                    ASSERT_LE(lists.there().size(), most);
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
    const std::size_t full = (count + most - 1) / most;
    EXPECT_EQ(calls_for(far, true), full);
    EXPECT_EQ(calls_for(far, false), full);
    EXPECT_EQ(calls_for(near, false), full);
    // Every gap has an entry of its own here.
    EXPECT_EQ(calls_for(near, true), (count + most / 2 - 1) / (most / 2));
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

// Of a real process.
class HostPieces : public testing::TestWithParam<std::size_t> {
  protected:
    void SetUp() override {
        std::string problem;
        ASSERT_EQ(make_session_memory(host_.config(GeneralBackEnd::automatic), memory_, problem), Status::ok);
        if (memory_->general_back_end() != BackEnd::cma) GTEST_SKIP() << "no cma here";
    }
    Status copy(bool writes, const Places& places, std::uint64_t base, std::vector<std::byte>& local) {
        std::vector<HostPiece> pieces;
        std::byte* at = local.data();
        for (std::size_t i = 0; i < places.at.size(); ++i) {
            pieces.push_back({{0, base + places.at[i], places.bytes[i]}, at});
            at += places.bytes[i];
        }
        return copy(writes, pieces);
    }
    Status copy(bool writes, std::span<const HostPiece> pieces) {
        Arrival arrival;
        std::uint32_t later = 7;
        const Status status = memory_->copy_pieces(writes, pieces, &arrival, later);
        later_ += later;
        while (later > 0 && arrival.calls < static_cast<int>(later)) {
            arrival.calls = 0;
            --later;
            wait_for(*memory_, arrival);
        }
        return is_error(status) || arrival.status == Status::in_progress ? status : arrival.status;
    }
    HostProcess host_;
    std::unique_ptr<SessionMemory> memory_;
    std::size_t later_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Pieces, HostPieces, testing::Values(1, most - 1, most, most + 1, 100000));

TEST_P(HostPieces, AreReadAndWritten) {
    std::mt19937 random(static_cast<unsigned>(GetParam()));
    for (const bool shuffled : {false, true}) {
        const Places places(random, GetParam(), 30, shuffled);
        const std::uint64_t base = host_.allocate(places.extent);
        host_.fill(base, places.extent, 3);
        std::vector<std::byte> expected = pattern_bytes(3, places.extent), local(places.sum);
        ASSERT_EQ(copy(false, places, base, local), Status::ok);
        std::size_t at = 0;
        for (std::size_t i = 0; i < places.at.size(); ++i) {
            for (std::size_t k = 0; k < places.bytes[i]; ++k, ++at) {
                ASSERT_EQ(local[at], expected[places.at[i] + k]);
                local[at] = expected[places.at[i] + k] = static_cast<std::byte>(random());
            }
        }
        ASSERT_EQ(copy(true, places, base, local), Status::ok);
        EXPECT_EQ(host_.contents(base, places.extent), expected);
    }
}

// Nothing was ever touched, or every other stretch of pages: the absent ones come beside the loop, by one
// copy.
TEST_P(HostPieces, OfPagesThatAreNotThere) {
    std::mt19937 random(static_cast<unsigned>(GetParam()) + 9);
    for (const bool some : {false, true}) {
        const Places places(random, GetParam(), 30, some);
        // From the C library so much is a mapping of its own, without pages but for the first.
        const std::uint64_t bytes = places.extent + (64 << 20), inside = 1 << 20;
        const std::uint64_t base = host_.allocate(bytes) + inside;
        const std::uint64_t write_base = host_.allocate(bytes) + inside;
        std::vector<std::byte> expected(places.extent), local(places.sum, std::byte{1});
        for (std::uint64_t at = 0; some && at < places.extent; at += 40 * page)
            host_.fill(base + at, std::min<std::uint64_t>(20 * page, places.extent - at), 5);
        expected = std::vector<std::byte>(places.extent);
        for (std::uint64_t at = 0; some && at < places.extent; at += 40 * page) {
            const auto filled = pattern_bytes(5, std::min<std::uint64_t>(20 * page, places.extent - at));
            std::ranges::copy(filled, expected.begin() + static_cast<std::ptrdiff_t>(at));
        }
        later_ = 0;
        ASSERT_EQ(copy(false, places, base, local), Status::ok);
        EXPECT_LE(later_, 1u);
        EXPECT_TRUE(some || later_ == 1);
        std::size_t at = 0;
        for (std::size_t i = 0; i < places.at.size(); ++i)
            for (std::size_t k = 0; k < places.bytes[i]; ++k, ++at)
                ASSERT_EQ(local[at], expected[places.at[i] + k]) << i;
        std::ranges::fill(expected, std::byte{0});
        at = 0;
        for (std::size_t i = 0; i < places.at.size(); ++i)
            for (std::size_t k = 0; k < places.bytes[i]; ++k, ++at)
                expected[places.at[i] + k] = local[at] = static_cast<std::byte>(random());
        later_ = 0;
        ASSERT_EQ(copy(true, places, write_base, local), Status::ok);
        EXPECT_EQ(later_, 1u);
        EXPECT_EQ(host_.contents(write_base, places.extent), expected);
    }
}

TEST_P(HostPieces, OneThatIsNotMappedIsAnError) {
    const std::size_t count = GetParam();
    const std::uint64_t base = host_.allocate(count * 8 + (1 << 20));
    const std::uint64_t fixed = host_.allocate_read_only(page);
    host_.fill(base, count * 8, 1);
    std::vector<std::byte> local(count * 4);
    for (const std::size_t bad : {std::size_t{0}, count / 2, count - 1}) {
        std::vector<HostPiece> pieces;
        for (std::size_t i = 0; i < count; ++i)
            pieces.push_back({{0, base + i * 8, 4}, local.data() + i * 4});
        pieces[bad].range.address = page;
        EXPECT_EQ(copy(false, pieces), Status::access);
        EXPECT_EQ(copy(true, pieces), Status::access);
        pieces[bad].range.address = ~std::uint64_t{0} - 1;
        EXPECT_EQ(copy(false, pieces), Status::access);
        pieces[bad].range.address = fixed;
        EXPECT_EQ(copy(true, pieces), Status::access);
        EXPECT_EQ(copy(false, pieces), Status::ok);
    }
    EXPECT_EQ(memory_->health(), Status::ok);
}

TEST_P(HostPieces, OfAProcessThatEndedOrOfAStoppedSession) {
    std::vector<std::byte> local(4 * GetParam());
    const std::uint64_t base = host_.allocate(local.size() + (1 << 20));
    host_.fill(base, local.size(), 1);
    std::vector<HostPiece> pieces;
    for (std::size_t i = 0; i < GetParam(); ++i)
        pieces.push_back({{0, base + 4 * i, 4}, local.data() + 4 * i});
    ASSERT_EQ(copy(true, pieces), Status::ok);
    host_.kill();
    EXPECT_EQ(copy(false, pieces), Status::peer_lost);
    EXPECT_EQ(copy(true, pieces), Status::peer_lost);
    memory_->stop(Status::canceled);
    EXPECT_EQ(copy(true, pieces), Status::canceled);
}

// Pieces of regions go by their own back ends, beside others in the same list.
TEST(MixedPieces, OfRegionsAndOtherMemory) {
    HostProcess host;
    std::unique_ptr<SessionMemory> memory;
    std::string problem;
    for (const GeneralBackEnd general : {GeneralBackEnd::automatic, GeneralBackEnd::staged}) {
        ASSERT_EQ(make_session_memory(host.config(general), memory, problem), Status::ok) << problem;
        if (general == GeneralBackEnd::staged) {
            ASSERT_EQ(host.start_agent(memory->take_staging_files()), Status::ok);
        }
        SharedMemory shared = host.allocate_shared(8192);
        const std::uint64_t plain = host.allocate(8192), address = shared.address;
        ASSERT_EQ(memory->add_region(shared.region, address, shared.bytes, std::move(shared.file)),
                  Status::ok);
        std::vector<std::byte> data = pattern_bytes(8, 200);
        const HostPiece pieces[] = {{{shared.region, 100, 50}, data.data()},
                                    {{0, plain + 100, 50}, data.data() + 50},
                                    {{shared.region, 200, 50}, data.data() + 100},
                                    {{0, plain + 200, 50}, data.data() + 150}};
        Arrival arrival;
        std::uint32_t later = 0;
        ASSERT_EQ(memory->copy_pieces(true, pieces, &arrival, later), Status::ok);
        while (static_cast<std::uint32_t>(arrival.calls) < later)
            memory->progress();
        const auto first = host.contents(address + 100, 150), second = host.contents(plain + 100, 150);
        for (std::size_t i = 0; i < 50; ++i) {
            EXPECT_EQ(first[i], data[i]);
            EXPECT_EQ(second[i], data[50 + i]);
            EXPECT_EQ(first[100 + i], data[100 + i]);
            EXPECT_EQ(second[100 + i], data[150 + i]);
        }
    }
}

}  // namespace
}  // namespace offpath::memory::test
