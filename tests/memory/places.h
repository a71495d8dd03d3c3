// Random places in memory, for tests of copies with many pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <unistd.h>

namespace offpath::memory::test {

inline const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

// Places of 1 to `longest` bytes that do not overlap, in ascending or random order.
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
            // Let some extend beyond the end of a page.
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

}  // namespace offpath::memory::test
