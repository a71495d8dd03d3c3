// Cuts a block into segments of `segment_bytes`; the last one has the rest. An empty block has no segments.
// segment_bytes 0 leaves a block whole.
#pragma once

#include <algorithm>
#include <cstdint>

namespace offpath::collectives {

struct Segments {
    std::uint64_t bytes = 0, segment_bytes = 0;

    std::uint64_t step() const {
        return segment_bytes == 0 ? std::max<std::uint64_t>(bytes, 1) : segment_bytes;
    }
    std::uint64_t count() const { return bytes / step() + (bytes % step() != 0); }
    std::uint64_t offset(std::uint64_t index) const { return index * step(); }
    std::uint64_t size(std::uint64_t index) const { return std::min(step(), bytes - offset(index)); }
};

}  // namespace offpath::collectives
