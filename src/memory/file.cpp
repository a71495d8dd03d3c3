#include "memory/file.h"

#include "base/file_size.h"
#include "base/log.h"

#include <cerrno>
#include <cstring>
#include <limits>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace offpath::memory {

namespace {

std::size_t round_up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

Status failed(const char* call) {
    const int error = errno;
    log::error(Code::resources, "{}: {}", call, std::strerror(error));
    return error == ENOMEM || error == ENOSPC || error == EFBIG ? Status::memory : Status::system;
}

}  // namespace

std::size_t page_bytes() {
    static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

File::~File() {
    if (fd_ < 0) return;
    own_descriptors::forget(fd_);
    close(fd_);
}

Mapping::~Mapping() {
    if (data_ != nullptr) munmap(data_, bytes_);
}

Status Mapping::map(int fd, std::size_t bytes, Mapping& mapping) {
    if (bytes == 0 || bytes > std::numeric_limits<std::size_t>::max() / 2) return Status::invalid;
    const std::size_t length = round_up(bytes, page_bytes());
    const std::size_t alignment = length >= huge_page_bytes ? huge_page_bytes : 0;
    // A mapping at a multiple of 2 MiB is cut out of a larger reservation.
    void* reserved =
        mmap(nullptr, length + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return failed("mmap of address space");
    auto* const begin = static_cast<std::byte*>(reserved);
    std::byte* const at = alignment == 0
                              ? begin
                              : begin + (round_up(reinterpret_cast<std::uintptr_t>(begin), alignment) -
                                         reinterpret_cast<std::uintptr_t>(begin));
    if (mmap(at, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        const Status status = failed("mmap of a memory file");
        munmap(reserved, length + alignment);
        return status;
    }
    if (at != begin) munmap(begin, static_cast<std::size_t>(at - begin));
    const auto behind = static_cast<std::size_t>(begin + length + alignment - (at + length));
    if (behind != 0) munmap(at + length, behind);
    Mapping result;
    result.data_ = at;
    result.bytes_ = length;
    mapping = std::move(result);
    return Status::ok;
}

void Mapping::populate() const {
    if (madvise(data_, bytes_, MADV_POPULATE_WRITE) == 0) return;
    madvise(data_, bytes_, MADV_WILLNEED);
}

void Mapping::populate_if_allocated(int fd) const {
    struct stat facts {};
    if (fstat(fd, &facts) == 0 && static_cast<std::uint64_t>(facts.st_blocks) * 512 >= bytes_) populate();
}

void Mapping::advise_huge_pages() const {
    if (bytes_ >= huge_page_bytes) madvise(data_, bytes_, MADV_HUGEPAGE);
}

Status make_memory_file(const char* name, std::size_t bytes, File& file) {
    if (bytes == 0 || bytes > static_cast<std::size_t>(std::numeric_limits<off_t>::max()) / 2)
        return Status::invalid;
    File made(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!made) return failed("memfd_create");
    if (!set_file_bytes(made.get(), round_up(bytes, page_bytes())))
        return failed("the size of a memory file");
    if (fcntl(made.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return failed("sealing a memory file");
    file = std::move(made);
    return Status::ok;
}

Status check_memory_file(int fd, std::uint64_t bytes, const char*& why) {
    struct stat facts {};
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        why = "the descriptor is not a memory file";
        return Status::invalid;
    }
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0) {
        why = "the descriptor is not a memory file";
        return Status::invalid;
    }
    if ((seals & F_SEAL_SHRINK) == 0) {
        why = "the memory file is not sealed against shrinking";
        return Status::invalid;
    }
    const int flags = fcntl(fd, F_GETFL);
    if ((seals & F_SEAL_WRITE) != 0 || (flags & O_ACCMODE) != O_RDWR) {
        why = "the memory file is not writable";
        return Status::invalid;
    }
    if (facts.st_size < 0 || static_cast<std::uint64_t>(facts.st_size) < bytes) {
        why = "the memory file is smaller than the region";
        return Status::invalid;
    }
    return Status::ok;
}

}  // namespace offpath::memory
