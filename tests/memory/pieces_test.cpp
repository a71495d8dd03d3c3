// Many pieces of the memory of another real process, by every back end.
#include "host_process.h"
#include "memory/piece_lists.h"
#include "places.h"

#include <gtest/gtest.h>

#include <chrono>

namespace offpath::memory::test {
namespace {

constexpr std::size_t most_pieces = PieceLists::most_entries;

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
INSTANTIATE_TEST_SUITE_P(Pieces, HostPieces,
                         testing::Values(1, most_pieces - 1, most_pieces, most_pieces + 1, 100000));

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

// No page was ever touched, or only every other stretch of pages. One copy beside the loop reads the absent
// ones.
TEST_P(HostPieces, OfPagesThatAreNotThere) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer's allocator touches what it hands out";
#endif
    std::mt19937 random(static_cast<unsigned>(GetParam()) + 9);
    for (const bool some : {false, true}) {
        const Places places(random, GetParam(), 30, some);
        // The C library maps an allocation of this size by itself. Only its first page exists.
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

// Pieces of regions use their own back ends, beside other pieces in the same list.
TEST(MixedPieces, OfRegionsAndOtherMemory) {
    HostProcess host;
    std::unique_ptr<SessionMemory> memory;
    std::string problem;
    for (const GeneralBackEnd general : {GeneralBackEnd::automatic, GeneralBackEnd::staged}) {
        ASSERT_EQ(make_session_memory(host.config(general), memory, problem), Status::ok) << problem;
        if (memory->general_back_end() == BackEnd::staged) {
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
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (static_cast<std::uint32_t>(arrival.calls) < later && std::chrono::steady_clock::now() < limit)
            memory->progress();
        ASSERT_EQ(static_cast<std::uint32_t>(arrival.calls), later);
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
