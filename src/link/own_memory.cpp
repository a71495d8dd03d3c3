#include "link/own_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace offpath::link {
namespace {

constexpr std::size_t file_bytes = 64 << 10;

void* pointer(std::uint64_t address) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses of this process come back as numbers
    return reinterpret_cast<void*>(address);
}

Status from_errno(int error) {
    return error == EFAULT ? Status::access : Status::system;
}

}  // namespace

OwnMemory::OwnMemory() : pid_(getpid()), page_bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    const std::uint64_t word = 1;
    std::uint64_t found = 0;
    const auto here = reinterpret_cast<std::uint64_t>(&word);
    by_process_ = copy(false, here, reinterpret_cast<std::byte*>(&found), sizeof found) == Status::ok;
    can_tell_ = present(MADV_POPULATE_READ, here, sizeof word) == Status::ok;
    if (by_process_) return;
    file_ = memfd_create("offpath-link", MFD_CLOEXEC);
    if (file_ >= 0 && ftruncate(file_, file_bytes) != 0) {
        close(file_);
        file_ = -1;
    }
}

OwnMemory::~OwnMemory() {
    if (file_ >= 0) close(file_);
}

Status OwnMemory::copy(bool writes, std::uint64_t address, std::byte* local, std::size_t bytes) const {
    while (bytes > 0) {
        const iovec here{local, bytes};
        const iovec there{pointer(address), bytes};
        const ssize_t moved = writes ? process_vm_writev(pid_, &here, 1, &there, 1, 0)
                                     : process_vm_readv(pid_, &here, 1, &there, 1, 0);
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) return moved == 0 ? Status::access : from_errno(errno);
        local += moved;
        address += static_cast<std::uint64_t>(moved);
        bytes -= static_cast<std::size_t>(moved);
    }
    return Status::ok;
}

// The file's calls tell a bad address as an error, too. Plain system calls: race detectors that wrap the
// library's functions do not see what orders these accesses with the program's own.
Status OwnMemory::copy_by_file(bool writes, std::uint64_t address, std::byte* local,
                               std::size_t bytes) const {
    if (file_ < 0) return Status::system;
    while (bytes > 0) {
        const std::size_t piece = std::min(bytes, file_bytes);
        void* const from = writes ? static_cast<void*>(local) : pointer(address);
        void* const to = writes ? pointer(address) : static_cast<void*>(local);
        const long out = syscall(SYS_pwrite64, file_, from, piece, off_t{0});
        if (out < 0 && errno == EINTR) continue;
        if (out <= 0) return out == 0 ? Status::system : from_errno(errno);
        long in = 0;
        do {
            in = syscall(SYS_pread64, file_, to, static_cast<std::size_t>(out), off_t{0});
        } while (in < 0 && errno == EINTR);
        if (in <= 0) return in == 0 ? Status::system : from_errno(errno);
        local += in;
        address += static_cast<std::uint64_t>(in);
        bytes -= static_cast<std::size_t>(in);
    }
    return Status::ok;
}

Status OwnMemory::read(std::uint64_t address, void* destination, std::size_t bytes) const {
    auto* const local = static_cast<std::byte*>(destination);
    return by_process_ ? copy(false, address, local, bytes) : copy_by_file(false, address, local, bytes);
}

Status OwnMemory::write(std::uint64_t address, const void* source, std::size_t bytes) const {
    auto* const local = static_cast<std::byte*>(const_cast<void*>(source));  // an iovec has no const
    return by_process_ ? copy(true, address, local, bytes) : copy_by_file(true, address, local, bytes);
}

Status OwnMemory::present(int advice, std::uint64_t address, std::size_t bytes) const {
    const std::uint64_t first = address & ~std::uint64_t{page_bytes_ - 1};
    if (bytes == 0 || address > UINT64_MAX - bytes) return Status::access;
    int result;
    do {
        result = madvise(pointer(first), address + bytes - first, advice);
    } while (result != 0 && errno == EINTR);
    if (result == 0) return Status::ok;
    // ENOMEM: not mapped. EFAULT: mapped, and not for this. EINVAL: memory of a kind that it does not know.
    return errno == ENOMEM || errno == EFAULT ? Status::access : Status::unsupported;
}

Status OwnMemory::readable(std::uint64_t address, std::size_t bytes) const {
    return can_tell_ ? present(MADV_POPULATE_READ, address, bytes) : Status::unsupported;
}

Status OwnMemory::writable(std::uint64_t address, std::size_t bytes) const {
    return can_tell_ ? present(MADV_POPULATE_WRITE, address, bytes) : Status::unsupported;
}

}  // namespace offpath::link
