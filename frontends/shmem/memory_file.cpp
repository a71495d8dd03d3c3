#include "memory_file.h"

#include "base/file_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace offpath::shmem {

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

}  // namespace

MemoryFile::~MemoryFile() {
    if (fd_ >= 0) close(fd_);
}

bool MemoryFile::make(const char* name, std::size_t bytes, MemoryFile& file, std::string& problem) {
    MemoryFile made(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (made && set_file_bytes(made.get(), bytes) &&
        fcntl(made.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
        file = std::move(made);
        return true;
    }
    problem = fmt::format("a memory file of {} bytes cannot be made: {}", bytes, std::strerror(errno));
    return false;
}

bool MemoryFile::open_of(int pid, int fd, const FileIdentity& identity, std::size_t bytes, MemoryFile& file) {
    const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
    // Check the type first: opening some files has side effects.
    struct stat facts {};
    if (stat(path.c_str(), &facts) != 0 || FileIdentity{facts.st_dev, facts.st_ino} != identity) return false;
    MemoryFile opened(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!opened || opened.identity() != identity) return false;
    if (fstat(opened.get(), &facts) != 0 || static_cast<std::uint64_t>(facts.st_size) < bytes) return false;
    file = std::move(opened);
    return true;
}

std::byte* MemoryFile::map(std::size_t bytes) const {
    // The mapping begins at a multiple of a huge page. If it is large enough for memory with a greater
    // alignment, it begins at a multiple of that. It is cut out of a larger reservation.
    const std::size_t spare = bytes >= largest_alignment ? largest_alignment
                              : bytes >= huge_page       ? huge_page
                                                         : 0;
    void* reserved =
        mmap(nullptr, bytes + spare, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return nullptr;
    auto* const begin = static_cast<std::byte*>(reserved);
    const std::size_t lead =
        spare == 0 ? 0 : (spare - reinterpret_cast<std::uintptr_t>(begin) % spare) % spare;
    std::byte* const at = begin + lead;
    if (!map_over(at, bytes)) {
        munmap(begin, bytes + spare);
        return nullptr;
    }
    if (lead > 0) munmap(begin, lead);
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t whole = (bytes + page - 1) / page * page;
    if (const std::size_t behind = bytes + spare - lead - std::min(whole, bytes + spare - lead); behind > 0)
        munmap(at + whole, behind);
    // Best effort: for systems that grant huge pages on request.
    if (spare > 0) madvise(at, bytes, MADV_HUGEPAGE);
    return at;
}

bool MemoryFile::map_over(std::byte* address, std::size_t bytes) const {
    return mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_, 0) != MAP_FAILED;
}

FileIdentity MemoryFile::identity() const {
    struct stat facts {};
    if (fstat(fd_, &facts) != 0) return {};
    return {facts.st_dev, facts.st_ino};
}

void unmap(std::byte* address, std::size_t bytes) {
    munmap(address, bytes);
}

}  // namespace offpath::shmem
