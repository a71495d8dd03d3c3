#include "p2p/header.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace offpath::mpi::p2p {
namespace {

Header a_header() {
    Header header;
    header.bytes = 1 << 20;
    header.key = {3, 4};
    header.source = 5;
    header.destination = 6;
    return header;
}

TEST(Header, ComesBackAsItWas) {
    open_headers(draw_header_secret(), 5);
    const HeaderBytes bytes = encode(a_header());
    ASSERT_TRUE(is_header(bytes));
    const Header header = decode(bytes.data());
    EXPECT_EQ(header.kind, Header::by_device);
    EXPECT_EQ(header.bytes, std::uint64_t{1} << 20);
    EXPECT_EQ(header.key.high, 3U);
    EXPECT_EQ(header.key.low, 4U);
    EXPECT_EQ(header.source, 5U);
    EXPECT_EQ(header.destination, 6U);
}

TEST(Header, DiffersEachTime) {
    open_headers(draw_header_secret(), 5);
    const HeaderBytes first = encode(a_header()), second = encode(a_header());
    EXPECT_FALSE(std::equal(first.begin(), first.begin() + 8, second.begin()));
    EXPECT_NE(first, second);
}

// The header arrives over zeros, over an older header, or over bytes of the program, and in any order.
TEST(Header, IsNoneUntilItHasComeWhole) {
    open_headers(draw_header_secret(), 5);
    std::mt19937 random(1);
    HeaderBytes before{};
    for (int round = 0; round < 3; ++round) {
        const HeaderBytes whole = encode(a_header());
        for (std::size_t first = 0; first < whole.size(); ++first) {
            for (std::size_t last = first + 1; last <= whole.size(); ++last) {
                HeaderBytes torn = before;
                std::copy(whole.begin() + static_cast<std::ptrdiff_t>(first),
                          whole.begin() + static_cast<std::ptrdiff_t>(last),
                          torn.begin() + static_cast<std::ptrdiff_t>(first));
                if (torn == before) continue;
                EXPECT_EQ(is_header(torn), torn == whole);
            }
        }
        before = whole;
        if (round == 1)
            std::generate(before.begin(), before.end(), [&] { return static_cast<char>(random()); });
    }
}

TEST(Header, OfAnotherJobIsNone) {
    open_headers({1, 2}, 0);
    const HeaderBytes bytes = encode(a_header());
    open_headers({1, 3}, 0);
    EXPECT_FALSE(is_header(bytes));
}

}  // namespace
}  // namespace offpath::mpi::p2p
