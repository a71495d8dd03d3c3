#include "rma/ranges.h"

#include <gtest/gtest.h>

namespace offpath::rma {
namespace {

TEST(Ranges, FindOnlyWhatLiesWhollyInside) {
    Ranges ranges;
    ASSERT_EQ(ranges.add(1000, 100, 0, 5000), Status::ok);
    EXPECT_NE(ranges.find(1000, 100), nullptr);
    EXPECT_NE(ranges.find(1099, 1), nullptr);
    EXPECT_EQ(ranges.find(1099, 2), nullptr);
    EXPECT_EQ(ranges.find(999, 1), nullptr);
    EXPECT_EQ(ranges.find(1101, 0), nullptr);
    EXPECT_EQ(ranges.find(1050, UINT64_MAX), nullptr);
    EXPECT_EQ(ranges.find(UINT64_MAX, 1), nullptr);
    ranges.find(1000, 1)->leaving = true;
    EXPECT_EQ(ranges.find(1000, 1), nullptr);
}

TEST(Ranges, RefuseOverlapsAndWrapping) {
    Ranges ranges;
    ASSERT_EQ(ranges.add(1000, 100, 0, 0), Status::ok);
    EXPECT_EQ(ranges.add(1099, 1, 0, 0), Status::invalid);
    EXPECT_EQ(ranges.add(990, 11, 0, 0), Status::invalid);
    EXPECT_EQ(ranges.add(900, 500, 0, 0), Status::invalid);
    EXPECT_EQ(ranges.add(UINT64_MAX - 5, 10, 0, 0), Status::invalid);
    EXPECT_EQ(ranges.add(5, 0, 0, 0), Status::invalid);
    EXPECT_EQ(ranges.add(990, 10, 0, 0), Status::ok);
    EXPECT_EQ(ranges.add(1100, 10, 0, 0), Status::ok);
    // Adjacent ranges stay separate, because each was attached by itself.
    EXPECT_EQ(ranges.find(995, 10), nullptr);
    ranges.remove(990);
    EXPECT_EQ(ranges.at(990), nullptr);
}

TEST(Ranges, NeighboursCoverWhatSpansThem) {
    Ranges ranges;
    for (std::uint64_t begin : {990, 1000, 1100, 1201})
        ASSERT_EQ(ranges.add(begin, begin == 990 ? 10 : 100, 0, begin), Status::ok);
    std::vector<Ranges::Range*> found;
    EXPECT_TRUE(ranges.cover(995, 200, found));
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[0]->begin, 990U);
    EXPECT_EQ(found[2]->begin, 1100U);
    EXPECT_TRUE(ranges.cover(1199, 1, found));
    EXPECT_EQ(found.size(), 4U);
    // A byte between two ranges, before the first one, or behind the last one.
    EXPECT_FALSE(ranges.cover(1199, 3, found));
    EXPECT_FALSE(ranges.cover(989, 5, found));
    EXPECT_FALSE(ranges.cover(1300, 2, found));
    EXPECT_FALSE(ranges.cover(995, UINT64_MAX, found));
    ranges.at(1000)->leaving = true;
    EXPECT_FALSE(ranges.cover(995, 200, found));
    EXPECT_EQ(found.size(), 4U);
}

}  // namespace
}  // namespace offpath::rma
