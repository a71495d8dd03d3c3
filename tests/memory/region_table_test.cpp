#include "memory/region_table.h"

#include <algorithm>
#include <random>
#include <thread>

#include <gtest/gtest.h>

namespace offpath::memory {
namespace {

const void* at(std::uintptr_t address) {
    return reinterpret_cast<const void*>(address);
}

void expect_region(const RegionTable& table, std::uintptr_t address, std::size_t bytes, std::uint64_t region,
                   std::uint64_t offset) {
    const HostRange range = table.resolve(at(address), bytes);
    EXPECT_EQ(range.region, region);
    EXPECT_EQ(range.address, offset);
    EXPECT_EQ(range.bytes, bytes);
}

TEST(RegionTable, ResolvesInsideAndOutside) {
    RegionTable table;
    expect_region(table, 1000, 10, 0, 1000);
    ASSERT_EQ(table.insert(7, at(1000), 100), Status::ok);
    ASSERT_EQ(table.insert(8, at(1100), 100), Status::ok);
    for (int twice = 0; twice < 2; ++twice) {  // the second time from the thread's memory
        expect_region(table, 1000, 100, 7, 0);
        expect_region(table, 1099, 1, 7, 99);
        expect_region(table, 1100, 1, 8, 0);
        expect_region(table, 1099, 2, 0, 1099);
        expect_region(table, 999, 1, 0, 999);
        expect_region(table, 1200, 1, 0, 1200);
        expect_region(table, UINTPTR_MAX, 2, 0, UINTPTR_MAX);
    }
}

TEST(RegionTable, RefusesOverlapsAndNonsense) {
    RegionTable table;
    ASSERT_EQ(table.insert(1, at(1000), 100), Status::ok);
    EXPECT_EQ(table.insert(2, at(1099), 10), Status::invalid);
    EXPECT_EQ(table.insert(2, at(950), 51), Status::invalid);
    EXPECT_EQ(table.insert(2, at(900), 1000), Status::invalid);
    EXPECT_EQ(table.insert(2, at(1010), 1), Status::invalid);
    EXPECT_EQ(table.insert(0, at(5000), 1), Status::invalid);
    EXPECT_EQ(table.insert(2, at(5000), 0), Status::invalid);
    EXPECT_EQ(table.insert(2, at(UINTPTR_MAX), 2), Status::invalid);
    EXPECT_EQ(table.erase(2), Status::invalid);
    EXPECT_EQ(table.size(), 1u);
}

TEST(RegionTable, AFreedAddressIsForgottenAtOnce) {
    RegionTable table, other;
    ASSERT_EQ(table.insert(1, at(4096), 4096), Status::ok);
    expect_region(table, 4096, 8, 1, 0);
    expect_region(other, 4096, 8, 0, 4096);
    ASSERT_EQ(table.erase(1), Status::ok);
    expect_region(table, 4096, 8, 0, 4096);
    ASSERT_EQ(table.insert(2, at(4096), 4096), Status::ok);
    expect_region(table, 4096, 8, 2, 0);
}

TEST(RegionTable, AgreesWithANaiveList) {
    struct Known {
        std::uint64_t region;
        std::uintptr_t start;
        std::size_t bytes;
    };
    RegionTable table;
    std::vector<Known> known;
    std::mt19937_64 random(3);
    for (std::uint64_t step = 1; step < 4000; ++step) {
        const std::uintptr_t start = 1000 + random() % 4000;
        const std::size_t bytes = 1 + random() % 40;
        if (random() % 3 == 0 && !known.empty()) {
            const std::size_t which = random() % known.size();
            ASSERT_EQ(table.erase(known[which].region), Status::ok);
            known.erase(known.begin() + static_cast<std::ptrdiff_t>(which));
        } else {
            const bool free = std::none_of(known.begin(), known.end(), [&](const Known& k) {
                return k.start < start + bytes && start < k.start + k.bytes;
            });
            ASSERT_EQ(table.insert(step, at(start), bytes), free ? Status::ok : Status::invalid);
            if (free) known.push_back({step, start, bytes});
        }
        const std::uintptr_t asked = 1000 + random() % 4000;
        const std::size_t length = 1 + random() % 20;
        const auto found = std::find_if(known.begin(), known.end(), [&](const Known& k) {
            return k.start <= asked && asked + length <= k.start + k.bytes;
        });
        expect_region(table, asked, length, found == known.end() ? 0 : found->region,
                      found == known.end() ? asked : asked - found->start);
    }
}

TEST(RegionTable, ReadersNeverSeeAHalfMadeTable) {
    RegionTable table;
    // Region r is at r * 1000 and has 500 + r bytes. The even regions come and go.
    for (std::uint64_t r = 1; r < 100; r += 2)
        ASSERT_EQ(table.insert(r, at(r * 1000), 500 + r), Status::ok);
    std::atomic<bool> stop{false};
    std::vector<std::thread> readers;
    for (unsigned t = 0; t < 2; ++t)
        readers.emplace_back([&, t] {
            std::mt19937_64 random(t);
            while (!stop.load()) {
                const std::uint64_t r = 1 + random() % 99;
                const HostRange range = table.resolve(at(r * 1000 + 3), 490);
                if (r % 2 == 1 || range.region != 0) {
                    ASSERT_EQ(range.region, r);
                    ASSERT_EQ(range.address, 3u);
                }
            }
        });
    std::mt19937_64 random(9);
    for (int i = 0; i < 20000; ++i) {
        const std::uint64_t r = 2 * (1 + random() % 49);
        if (table.erase(r) != Status::ok) {
            ASSERT_EQ(table.insert(r, at(r * 1000), 500 + r), Status::ok);
        }
    }
    stop = true;
    for (auto& reader : readers)
        reader.join();
}

}  // namespace
}  // namespace offpath::memory
