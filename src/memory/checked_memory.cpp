#include "memory/checked_memory.h"

#include "base/log.h"
#include "memory/copy.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace offpath::memory {
namespace {

constexpr std::size_t file_bytes = 256 << 10;
// The size of the pipe, if it may be made larger than usual. Otherwise it takes fewer bytes at a time.
constexpr std::size_t pipe_bytes = 256 << 10;

char* pointer(std::uint64_t address) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses of this process come back as numbers
    return reinterpret_cast<char*>(address);
}

// Moves bytes with SYS_pwrite64 or SYS_pread64. The calls are plain system calls, because race detectors that
// wrap the library's functions do not see what orders these accesses with the program's own.
Status pass(long call, int file, std::uint64_t place, std::uint64_t address, std::size_t bytes) {
    for (std::size_t done = 0; done < bytes;) {
        const long moved =
            syscall(call, file, pointer(address + done), bytes - done, static_cast<off_t>(place + done));
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) return moved < 0 && errno == EFAULT ? Status::access : Status::system;
        done += static_cast<std::size_t>(moved);
    }
    return Status::ok;
}

}  // namespace

CheckedMemory::CheckedMemory() : page_bytes_(page_bytes()) {
    if (make_memory_file("offpath-link", file_bytes, file_) != Status::ok ||
        Mapping::map(file_.get(), file_bytes, mapping_) != Status::ok)
        log::error(Code::resources, "staging: there is no memory file; transfers will fail");
    const char here = 0;
    // Emulators accept every advice and do nothing. So the first page, which is never mapped, must be
    // refused.
    can_tell_ = present(MADV_POPULATE_READ, reinterpret_cast<std::uint64_t>(&here), 1) == Status::ok &&
                present(MADV_POPULATE_READ, 0, 1) == Status::access;
}

CheckedMemory::~CheckedMemory() {
    close_pipe();
}

Status CheckedMemory::to_file(std::uint64_t address, int file, std::uint64_t place, std::size_t bytes) {
    return pass(SYS_pwrite64, file, place, address, bytes);
}

Status CheckedMemory::from_file(int file, std::uint64_t place, std::uint64_t address, std::size_t bytes) {
    return pass(SYS_pread64, file, place, address, bytes);
}

std::size_t CheckedMemory::read_some(std::uint64_t address, std::span<std::byte> into) {
    const iovec here{into.data(), into.size()}, there{pointer(address), into.size()};
    const ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    return got > 0 ? static_cast<std::size_t>(got) : 0;
}

Status CheckedMemory::write_pieces(std::span<const ForeignPiece> pieces) {
    PieceLists lists(pieces, false);
    while (!lists.over()) {
        lists.fill();
        const auto here = lists.here(), there = lists.there();
        const ssize_t moved =
            process_vm_writev(getpid(), here.data(), here.size(), there.data(), there.size(), 0);
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) return Status::access;
        lists.moved(static_cast<std::size_t>(moved));
    }
    return Status::ok;
}

Status CheckedMemory::move(bool out, std::uint64_t address, std::byte* local, std::size_t bytes) const {
    if (mapping_.data() == nullptr) return Status::system;
    while (bytes > 0) {
        const std::size_t piece = std::min(bytes, file_bytes);
        if (!out) copy_bytes(mapping_.data(), local, piece);
        if (const Status status =
                out ? to_file(address, file_.get(), 0, piece) : from_file(file_.get(), 0, address, piece);
            status != Status::ok)
            return status;
        if (out) copy_bytes(local, mapping_.data(), piece);
        local += piece;
        address += piece;
        bytes -= piece;
    }
    return Status::ok;
}

Status CheckedMemory::read(std::uint64_t address, void* destination, std::size_t bytes) const {
    return move(true, address, static_cast<std::byte*>(destination), bytes);
}

Status CheckedMemory::write(std::uint64_t address, const void* source, std::size_t bytes) const {
    // The source is not written to. move() has one type for both directions.
    return move(false, address, static_cast<std::byte*>(const_cast<void*>(source)), bytes);
}

Status CheckedMemory::put(std::uint64_t address, const void* source, std::size_t bytes) const {
    const Status status = writable(address, bytes);
    if (status == Status::unsupported) return write(address, source, bytes);
    if (status == Status::ok) copy_bytes(pointer(address), source, bytes);
    return status;
}

Status CheckedMemory::copy(std::uint64_t from, std::uint64_t to, std::size_t bytes) const {
    while (bytes > 0) {
        std::size_t moved = 0;
        Status status = splice(from, to, bytes, moved);
        if (status == Status::unsupported) {
            moved = std::min(bytes, file_bytes);
            status = to_file(from, file_.get(), 0, moved);
            if (status == Status::ok) status = from_file(file_.get(), 0, to, moved);
        }
        if (status != Status::ok) return status;
        from += moved;
        to += moved;
        bytes -= moved;
    }
    return Status::ok;
}

Status CheckedMemory::splice(std::uint64_t from, std::uint64_t to, std::size_t bytes,
                             std::size_t& moved) const {
    if (pipe_[0] < 0) open_pipe();
    if (pipe_[0] < 0) return Status::unsupported;
    const iovec source{pointer(from), std::min(bytes, pipe_bytes)};
    long in;
    do {
        in = syscall(SYS_vmsplice, pipe_[1], &source, 1UL, 0U);
    } while (in < 0 && errno == EINTR);
    if (in <= 0) return in < 0 && errno == EFAULT ? Status::access : Status::unsupported;
    for (long out = 0; out < in;) {
        const long got = syscall(SYS_read, pipe_[0], pointer(to + static_cast<std::uint64_t>(out)),
                                 static_cast<std::size_t>(in - out));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            const bool not_there = got < 0 && errno == EFAULT;
            close_pipe();  // with what is left in it
            return not_there ? Status::access : Status::system;
        }
        out += got;
    }
    moved = static_cast<std::size_t>(in);
    return Status::ok;
}

void CheckedMemory::open_pipe() const {
    if (pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) != 0) {
        pipe_[0] = pipe_[1] = -1;
        return;
    }
    fcntl(pipe_[1], F_SETPIPE_SZ, static_cast<int>(pipe_bytes));
}

void CheckedMemory::close_pipe() const {
    for (int& end : pipe_)
        if (end >= 0) close(std::exchange(end, -1));
}

Status CheckedMemory::present(int advice, std::uint64_t address, std::size_t bytes) const {
    const std::uint64_t first = address & ~std::uint64_t{page_bytes_ - 1};
    if (bytes == 0 || address > UINT64_MAX - bytes) return Status::access;
    int result;
    do {
        // The library's madvise() is not called, because UCX may have replaced it.
        result = static_cast<int>(syscall(SYS_madvise, pointer(first), address + bytes - first, advice));
    } while (result != 0 && errno == EINTR);
    if (result == 0) return Status::ok;
    // ENOMEM: the memory is not mapped. EFAULT: its pages are not there. EINVAL: the advice is not known, or
    // does not apply to this kind of memory.
    return errno == ENOMEM || errno == EFAULT ? Status::access : Status::unsupported;
}

Status CheckedMemory::readable(std::uint64_t address, std::size_t bytes) const {
    return can_tell_ ? present(MADV_POPULATE_READ, address, bytes) : Status::unsupported;
}

Status CheckedMemory::writable(std::uint64_t address, std::size_t bytes) const {
    return can_tell_ ? present(MADV_POPULATE_WRITE, address, bytes) : Status::unsupported;
}

}  // namespace offpath::memory
