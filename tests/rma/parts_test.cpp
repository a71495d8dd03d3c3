#include "rma/parts.h"

#include <gtest/gtest.h>

#include <random>

namespace offpath::rma {
namespace {

TEST(Parts, CoverEverySegmentOnceInOrder) {
    std::mt19937 random(11);
    for (int round = 0; round < 200; ++round) {
        std::vector<Segment> segments(1 + random() % 700);
        std::uint64_t bytes = 0;
        for (Segment& segment : segments) {
            segment = {std::uint64_t{random()} * 8, 8 * (1 + random() % (round % 3 == 0 ? 40000 : 4))};
            bytes += segment.bytes;
        }
        Parts parts(segments, bytes);
        std::vector<Segment> seen;
        std::uint64_t at = 0;
        while (!parts.over()) {
            const Part part = parts.next(part_bytes);
            ASSERT_EQ(part.at, at);
            ASSERT_LE(part.bytes, part_bytes);
            ASSERT_LE(part.segments.size(), message_segments);
            std::uint64_t sum = 0;
            for (const Segment& piece : part.segments) {
                ASSERT_EQ(piece.bytes % 8, 0u) << "an element was cut";
                sum += piece.bytes;
                const bool follows = !seen.empty() && seen.back().bytes < segments[seen.size() - 1].bytes &&
                                     seen.back().offset + seen.back().bytes == piece.offset;
                if (follows) {
                    seen.back().bytes += piece.bytes;
                } else {
                    seen.push_back(piece);
                }
            }
            ASSERT_EQ(sum, part.bytes);
            at += part.bytes;
        }
        ASSERT_EQ(at, bytes);
        ASSERT_EQ(seen, segments);
    }
}

}  // namespace
}  // namespace offpath::rma
