// Ranges: the memory that a window exposes at one target. A plain window is one range from offset 0 on; a
// dynamic one is a set of ranges by address, which come and go. Pure. Threads: one.
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

    // invalid: empty, wraps around or overlaps another. A range of no bytes is accepted at offset 0 of a
    // plain window only, by not adding it.
    Status add(std::uint64_t begin, std::uint64_t bytes, std::uint64_t region, std::uint64_t address);
    // The range in which all of [offset, offset + bytes) lies, and which is not leaving; else null.
    Range* find(std::uint64_t offset, std::uint64_t bytes);
    // Adds to `found` the ranges that cover [offset, offset + bytes), bytes > 0, side by side. False, and
    // nothing is added: some byte lies in none, or in one that is leaving.
    bool cover(std::uint64_t offset, std::uint64_t bytes, std::vector<Range*>& found);
    // The range that begins there; else null.
    Range* at(std::uint64_t begin);
    void remove(std::uint64_t begin) { ranges_.erase(begin); }

  private:
    std::map<std::uint64_t, Range> ranges_;
};

}  // namespace offpath::rma
