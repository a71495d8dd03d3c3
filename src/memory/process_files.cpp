#include "memory/process_files.h"

#include "base/clock.h"
#include "base/log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace offpath::memory {
namespace {

// How long a list of areas holds, as in Residency.
constexpr std::uint64_t list_holds_ns = 1'000'000'000;

File open_of(pid_t pid, const char* name, int flags) {
    return File(::open(fmt::format("/proc/{}/{}", pid, name).c_str(), flags | O_CLOEXEC));
}

}  // namespace

ProcessFiles::ProcessFiles(pid_t pid)
    : memory_(open_of(pid, "mem", O_RDWR)), maps_(open_of(pid, "maps", O_RDONLY)) {}

// The kernel would write through this file to private memory that is read-only for the process itself. So the
// list of the process's areas decides. 0: errno says why.
std::uint64_t ProcessFiles::permitted(bool writes, std::uint64_t address, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (!said_) {
        said_ = true;
        log::info("a process no longer permits process_vm_readv: its memory is reached by /proc/PID/mem");
    }
    const std::uint64_t now = now_ns();
    if (listed_ns_ != 0 && now - listed_ns_ <= list_holds_ns)
        if (const std::uint64_t known = listed(writes, address, bytes); known == bytes) return known;
    list_areas();
    listed_ns_ = now;
    errno = areas_.empty() ? ESRCH : EFAULT;
    return listed(writes, address, bytes);
}

std::uint64_t ProcessFiles::listed(bool writes, std::uint64_t address, std::uint64_t bytes) const {
    const std::uint64_t end = address + bytes;
    std::uint64_t reached = address;
    auto area = std::ranges::upper_bound(areas_, address, {}, &Area::end);
    for (; area != areas_.end() && reached < end; ++area) {
        if (area->begin > reached || !(writes ? area->writable : area->readable)) break;
        reached = area->end;
    }
    return std::min(reached, end) - address;
}

void ProcessFiles::list_areas() {
    areas_.clear();
    std::string text;
    std::array<char, 64 << 10> piece;
    for (ssize_t got = 0;
         (got = pread(maps_.get(), piece.data(), piece.size(), static_cast<off_t>(text.size()))) > 0;)
        text.append(piece.data(), static_cast<std::size_t>(got));
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
        unsigned long begin = 0, end = 0;
        char read = '-', write = '-';
        if (std::sscanf(text.c_str() + at, "%lx-%lx %c%c", &begin, &end, &read, &write) != 4) break;
        areas_.push_back({begin, end, read == 'r', write == 'w'});
        if (text.find('\n', at) == std::string::npos) break;
    }
}

ssize_t ProcessFiles::move(bool writes, std::span<const iovec> here, std::span<const iovec> there) {
    const auto address = reinterpret_cast<std::uintptr_t>(there.front().iov_base);
    const std::size_t wanted = std::min(here.front().iov_len, there.front().iov_len);
    const std::size_t bytes = permitted(writes, address, wanted);
    if (bytes == 0) return -1;
    const auto place = static_cast<off_t>(address);
    void* const local = here.front().iov_base;
    const ssize_t moved =
        writes ? pwrite(memory_.get(), local, bytes, place) : pread(memory_.get(), local, bytes, place);
    if (moved < 0 && errno == EIO) errno = EFAULT;  // the area is gone
    if (moved != 0) return moved;
    errno = ESRCH;  // its address space is gone
    return -1;
}

}  // namespace offpath::memory
