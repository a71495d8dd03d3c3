#include "settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

namespace offpath::shmem {
namespace {

TEST(ShmemSettings, SizesHaveFractionsAndSuffixes) {
    EXPECT_EQ(parse_size("4096", "X"), 4096u);
    EXPECT_EQ(parse_size("1k", "X"), 1024u);
    EXPECT_EQ(parse_size("20M", "X"), 20u << 20);
    EXPECT_EQ(parse_size("1.5g", "X"), 3ull << 29);
    EXPECT_EQ(parse_size("1T", "X"), 1ull << 40);
    EXPECT_EQ(parse_size("3.1", "X"), 4u);
    EXPECT_EQ(parse_size("2MB", "X"), 2u << 20);
}

TEST(ShmemSettings, WhatIsNoSizeIsRefused) {
    for (const char* text : {"", "k", "-1", "0", "1x", "1 k", "1kk", "nan", "inf", "1e30", "100000t"})
        EXPECT_THROW(parse_size(text, "X"), std::invalid_argument) << text;
}

TEST(ShmemSettings, TheOldNameCountsToo) {
    setenv("SMA_SYMMETRIC_SIZE", "3m", 1);
    EXPECT_EQ(read_settings().heap_bytes, 3u << 20);
    setenv("SHMEM_SYMMETRIC_SIZE", "5m", 1);
    EXPECT_EQ(read_settings().heap_bytes, 5u << 20);
    unsetenv("SMA_SYMMETRIC_SIZE");
    unsetenv("SHMEM_SYMMETRIC_SIZE");
    EXPECT_EQ(read_settings().heap_bytes, 0u);
    EXPECT_LE(default_heap_bytes(), 1u << 30);
}

}  // namespace
}  // namespace offpath::shmem
