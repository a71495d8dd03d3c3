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
    // Neighbours are not one range: each was attached by itself.
    EXPECT_EQ(ranges.find(995, 10), nullptr);
    ranges.remove(990);
    EXPECT_EQ(ranges.at(990), nullptr);
}

}  // namespace
}  // namespace offpath::rma
