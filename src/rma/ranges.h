// Ranges: the memory that a window exposes at one target. A plain window is one range that starts at offset
// 0. A dynamic window is a changing set of ranges by address. Pure. Threads: one.
#pragma once

#include "base/status.h"

#include <cstdint>
#include <map>
#include <vector>

namespace offpath::rma {

class Ranges {
  public:
    struct Range {
        std::uint64_t begin = 0, bytes = 0;
        std::uint64_t region = 0, address = 0;  // as a HostRange names it
        std::uint32_t users = 0;
        bool leaving = false;
    };

    // invalid: empty, wraps around, or overlaps another range. A plain window of no bytes is represented by
    // adding no range.
    Status add(std::uint64_t begin, std::uint64_t bytes, std::uint64_t region, std::uint64_t address);
    // The range that contains all of [offset, offset + bytes) and is not leaving; else null.
    Range* find(std::uint64_t offset, std::uint64_t bytes);
    // Appends to `found` the adjacent ranges that cover [offset, offset + bytes), bytes > 0. False, and
    // nothing is appended: some byte lies in no range, or in one that is leaving.
    bool cover(std::uint64_t offset, std::uint64_t bytes, std::vector<Range*>& found);
    // The range that begins at `begin`; else null.
    Range* at(std::uint64_t begin);
    void remove(std::uint64_t begin) { ranges_.erase(begin); }

  private:
    std::map<std::uint64_t, Range> ranges_;
};

}  // namespace offpath::rma
