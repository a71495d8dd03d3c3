#include "memory/residency.h"

#include "base/log.h"
#include "memory/pagemap.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace offpath::memory {
namespace {

constexpr std::uint64_t holds_ns = 1'000'000'000;
constexpr std::uint64_t block_bytes = 64 << 10;
constexpr std::size_t most_memory_files = 32;
constexpr std::size_t entries_at_a_time = 512;

// At most 16, because no page is smaller than 4 KiB. A block has a bit for each page in one word.
std::uint64_t pages_per_block() {
    return std::max<std::uint64_t>(block_bytes / page_bytes(), 1);
}

File open_pagemap(pid_t pid) {
    return File(::open(("/proc/" + std::to_string(pid) + "/pagemap").c_str(), O_RDONLY | O_CLOEXEC));
}

// Whether the path names memory, as /proc/PID/maps spells it.
bool names_memory(std::string_view path) {
    return std::ranges::any_of(
        std::to_array<std::string_view>({"/memfd:", "/dev/shm/", "/SYSV", "/dev/zero"}),
        [&](std::string_view name) { return path.starts_with(name); });
}

}  // namespace

AddressRange memory_file_at(pid_t pid, std::uint64_t address) {
    const File pagemap = open_pagemap(pid);
    std::uint64_t entry = 0;
    if (pread(pagemap.get(), &entry, sizeof entry,
              static_cast<off_t>(address / page_bytes() * sizeof entry)) != sizeof entry ||
        (entry & pagemap::of_a_file) == 0)
        return {};
    std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long begin = 0, end = 0;
        int path_at = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx %*s %*s %*s %*s %n", &begin, &end, &path_at) < 2) break;
        if (begin > address) break;
        if (address >= end) continue;
        return path_at > 0 && names_memory(std::string_view(line).substr(static_cast<std::size_t>(path_at)))
                   ? AddressRange{begin, end}
                   : AddressRange{};
    }
    return {};
}

void Residency::open(pid_t pid) {
    pagemap_ = open_pagemap(pid);
    if (!pagemap_) log::debug("/proc/{}/pagemap: {}; its pages are not looked at", pid, std::strerror(errno));
}

bool Residency::resident(std::uint64_t address, std::size_t bytes, bool writes, std::uint64_t now_ns) {
    if (!pagemap_ || bytes == 0 || address > UINT64_MAX - bytes) return true;
    const std::uint64_t first = address / page_bytes(), end = (address + bytes - 1) / page_bytes() + 1;
    if (known(first, end, writes, now_ns)) return true;
    return !just_seen(first, end, now_ns) && look(first, end, writes, now_ns);
}

bool Residency::just_seen(std::uint64_t first, std::uint64_t end, std::uint64_t now_ns) const {
    const std::uint64_t per_block = pages_per_block();
    for (std::uint64_t number = first / per_block; number <= (end - 1) / per_block; ++number) {
        const Block& block = blocks_[number % blocks_.size()];
        if (block.number != number + 1 || block.seen_ns != now_ns) return false;
    }
    return true;
}

bool Residency::known(std::uint64_t first, std::uint64_t end, bool writes, std::uint64_t now_ns) const {
    const std::uint64_t per_block = pages_per_block();
    for (std::uint64_t page = first; page < end;) {
        const std::uint64_t number = page / per_block, in_block = page % per_block;
        const std::uint64_t count = std::min(per_block - in_block, end - page);
        const Block& block = blocks_[number % blocks_.size()];
        if (block.number != number + 1 || now_ns - block.seen_ns > holds_ns) return false;
        const std::uint64_t wanted = ((2ull << (count - 1)) - 1) << in_block;
        if ((wanted & ~(writes ? block.writable : block.readable)) != 0) return false;
        page += count;
    }
    return true;
}

// Looks at whole blocks, so that neighbouring addresses need no look of their own.
bool Residency::look(std::uint64_t first, std::uint64_t end, bool writes, std::uint64_t now_ns) {
    const std::uint64_t per_block = pages_per_block();
    std::array<std::uint64_t, entries_at_a_time> entries;
    std::uint64_t at = first / per_block * per_block;
    const std::uint64_t stop = ((end - 1) / per_block + 1) * per_block;
    bool all = true;
    while (at < stop) {
        const std::size_t count = std::min<std::uint64_t>(entries.size(), stop - at) / per_block * per_block;
        const ssize_t got = pread(pagemap_.get(), entries.data(), count * sizeof entries[0],
                                  static_cast<off_t>(at * sizeof entries[0]));
        // The process is gone, or no process has these addresses. The copy itself will report that.
        if (got != static_cast<ssize_t>(count * sizeof entries[0])) return true;
        for (std::size_t i = 0; i < count; i += per_block)
            remember((at + i) / per_block, std::span(entries).subspan(i, per_block), now_ns);
        all = all && known(std::max(first, at), std::min(end, at + count), writes, now_ns);
        at += count;
    }
    return all;
}

void Residency::remember(std::uint64_t number, std::span<const std::uint64_t> entries, std::uint64_t now_ns) {
    Block& block = blocks_[number % blocks_.size()];
    block = {number + 1, now_ns, 0, 0};
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const std::uint64_t entry = entries[i], address = (number * entries.size() + i) * page_bytes();
        if ((entry & pagemap::present) == 0) continue;
        block.readable |= 1ull << i;
        if ((entry & pagemap::write_protected) == 0 &&
            ((entry & pagemap::of_a_file) == 0 || in_memory_file(address, now_ns)))
            block.writable |= 1ull << i;
    }
}

bool Residency::in_memory_file(std::uint64_t address, std::uint64_t now_ns) const {
    return std::ranges::any_of(memory_files_, [&](const MemoryFile& known) {
        return address >= known.range.begin && address < known.range.end &&
               now_ns - known.seen_ns <= holds_ns;
    });
}

void Residency::learn(const AddressRange& memory_file, std::uint64_t now_ns) {
    if (memory_file.end == 0) return;
    std::erase_if(memory_files_, [&](const MemoryFile& known) {
        return now_ns - known.seen_ns > holds_ns ||
               (known.range.begin < memory_file.end && memory_file.begin < known.range.end);
    });
    if (memory_files_.size() < most_memory_files) memory_files_.push_back({memory_file, now_ns});
}

}  // namespace offpath::memory
