// Shared parts: a copy within a rank's memory that its proxy and the waiting rank make together. Each takes
// the next part that nobody has taken. So a proxy whose core is busy leaves these bytes to a rank that has
// nothing else to do, and a rank that computes leaves them to its proxy.
//
// The word, in memory that both map, is one more than the number of parts taken. At 0 the rank takes none:
// its proxy has not opened the copy, or is of a version that makes it alone.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace offpath::shared_parts {

using Word = std::atomic<std::uint64_t>;

// Both sides must agree on it.
constexpr std::uint64_t part_bytes = 128 << 10;

struct Part {
    std::uint64_t offset = 0;
    std::size_t bytes = 0;  // 0: there is none
};

inline void open(Word& word) {
    word.store(1, std::memory_order_release);
}

// Whether a part may still be there to take, now or once the copy is open.
inline bool left(const Word& word, std::uint64_t total) {
    return word.load(std::memory_order_relaxed) <= (total + part_bytes - 1) / part_bytes;
}

// Takes a part of a copy of `total` bytes.
inline Part take(Word& word, std::uint64_t total) {
    const std::uint64_t parts = (total + part_bytes - 1) / part_bytes;
    const auto taken_from = [&](std::uint64_t seen) {
        if (seen == 0 || seen > parts) return Part{};
        const std::uint64_t offset = (seen - 1) * part_bytes;
        return Part{offset, static_cast<std::size_t>(std::min(part_bytes, total - offset))};
    };
    // Looks first, so that the word is not written once all parts are taken.
    if (taken_from(word.load(std::memory_order_acquire)).bytes == 0) return {};
    return taken_from(word.fetch_add(1, std::memory_order_acq_rel));
}

}  // namespace offpath::shared_parts
