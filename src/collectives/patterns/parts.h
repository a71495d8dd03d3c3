// Cuts `bytes` into `count` parts, one per rank, as equal as whole units allow. The first parts have one unit
// more; the last ones may be empty.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace offpath::collectives {

struct Parts {
    std::uint64_t bytes = 0;
    std::uint32_t count = 1;
    std::uint64_t unit = 1;

    std::uint64_t units() const { return bytes / unit + (bytes % unit != 0); }
    std::uint64_t offset(std::uint32_t i) const {
        return std::min(bytes, unit * (i * (units() / count) + std::min<std::uint64_t>(i, units() % count)));
    }
    std::uint64_t size(std::uint32_t i) const { return offset(i + 1) - offset(i); }
    // The sizes of all parts.
    std::vector<std::uint64_t> sizes() const {
        std::vector<std::uint64_t> all(count);
        for (std::uint32_t i = 0; i < count; ++i)
            all[i] = size(i);
        return all;
    }
    std::vector<std::uint64_t> offsets() const {
        std::vector<std::uint64_t> all(count);
        for (std::uint32_t i = 0; i < count; ++i)
            all[i] = offset(i);
        return all;
    }
};

}  // namespace offpath::collectives
