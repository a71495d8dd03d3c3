// What an origin reads in the marks of a target.
#include "rma/marks.h"

#include <gtest/gtest.h>

#include <vector>

namespace offpath::rma {
namespace {

struct MarksTest : testing::Test {
    std::vector<std::uint64_t> memory = std::vector<std::uint64_t>(Marks::bytes(3) / 8);
    std::byte* const bytes = reinterpret_cast<std::byte*>(memory.data());
    Marks marks{bytes, 3};
    const std::byte* of(std::size_t rank) const { return bytes + rank * Marks::bytes_of_origin; }
    void apply(std::uint32_t mark, std::uint64_t value) {
        marks.begin(1, mark);
        marks.fetched(1, mark, std::as_bytes(std::span(&value, 1)));
        marks.end(1, mark);
    }
};

TEST_F(MarksTest, SayWhatIsAppliedInAnyOrder) {
    marks.begin(1, 7);
    marks.end(1, 7);
    marks.begin(1, 5);
    EXPECT_EQ(Marks::state(of(1), 5), Marks::State::begun);
    EXPECT_EQ(Marks::state(of(1), 6), Marks::State::unknown);
    EXPECT_EQ(Marks::state(of(1), 7), Marks::State::applied);
    EXPECT_EQ(Marks::state(of(0), 7), Marks::State::unknown);
    EXPECT_EQ(Marks::state(of(2), 7), Marks::State::unknown);
}

TEST_F(MarksTest, AreNotThoseOfALapBefore) {
    marks.end(1, 9);
    const std::uint32_t later = 9 + Marks::outstanding;
    EXPECT_EQ(Marks::state(of(1), later), Marks::State::unknown);
    marks.begin(1, later);
    EXPECT_EQ(Marks::state(of(1), later), Marks::State::begun);
    marks.end(1, later);
    EXPECT_EQ(Marks::state(of(1), later), Marks::State::applied);
}

TEST_F(MarksTest, KeepTheLastResults) {
    for (std::uint32_t mark = 1; mark <= Marks::results + 3; ++mark)
        apply(mark, 1000 + mark);
    std::uint64_t value = 0;
    EXPECT_FALSE(Marks::value(of(1), 3, value));
    ASSERT_TRUE(Marks::value(of(1), 4, value));
    EXPECT_EQ(value, 1004u);
    ASSERT_TRUE(Marks::value(of(1), Marks::results + 3, value));
    EXPECT_EQ(value, 1003u + Marks::results);
    EXPECT_FALSE(Marks::value(of(0), 4, value));
}

TEST_F(MarksTest, IgnoreWhatHasNone) {
    marks.begin(1, 0);
    marks.end(1, 0);
    marks.end(3, 1);
    Marks().end(0, 1);
    for (const std::uint64_t word : memory)
        EXPECT_EQ(word, 0u);
}

}  // namespace
}  // namespace offpath::rma
