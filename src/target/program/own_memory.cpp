#include "target/program/own_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

namespace offpath::target::own_memory {
namespace {

constexpr std::uint64_t neighbours = 64 << 20;  // apart at most

}  // namespace

std::size_t read(std::uint64_t address, std::span<std::byte> into) {
    const iovec here{into.data(), into.size()}, there{reinterpret_cast<void*>(address), into.size()};
    const ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    return got > 0 ? static_cast<std::size_t>(got) : 0;
}

bool readable(std::uint64_t address) {
    std::byte byte;
    return read(address, std::span(&byte, 1)) == 1;
}

bool write(std::span<const memory::ForeignPiece> pieces) {
    memory::PieceLists lists(pieces, false);
    while (!lists.over()) {
        lists.fill();
        const auto here = lists.here(), there = lists.there();
        const ssize_t moved =
            process_vm_writev(getpid(), here.data(), here.size(), there.data(), there.size(), 0);
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) return false;
        lists.moved(static_cast<std::size_t>(moved));
    }
    return true;
}

std::vector<AddressRange> ranges() {
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

}  // namespace offpath::target::own_memory
