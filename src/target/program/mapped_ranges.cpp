#include "target/program/mapped_ranges.h"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

namespace offpath::target {
namespace {

constexpr std::uint64_t neighbours = 64 << 20;  // apart at most

}  // namespace

std::vector<AddressRange> mapped_ranges() {
    std::vector<AddressRange> found;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        AddressRange range;
        // The kernel's own pages are in every process.
        if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64, &range.begin, &range.end) != 2 ||
            line.find("[v") != std::string::npos)
            continue;
        if (!found.empty() && range.begin - found.back().end < neighbours)
            found.back().end = range.end;
        else
            found.push_back(range);
    }
    return found;
}

}  // namespace offpath::target
