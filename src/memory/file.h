// File and Mapping: owners of file descriptors and of mappings. Move-only; each closes or unmaps what it
// holds. Threads: as any value. Forked children of a client do not keep the descriptors open
// (base/own_descriptors.h).
#pragma once

#include "base/own_descriptors.h"
#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace offpath::memory {

class File {
  public:
    File() = default;
    explicit File(int fd) : fd_(fd) { own_descriptors::note(fd); }
    File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    File& operator=(File&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~File();
    int get() const { return fd_; }
    int release() {
        own_descriptors::forget(fd_);
        return std::exchange(fd_, -1);
    }
    explicit operator bool() const { return fd_ >= 0; }

  private:
    int fd_ = -1;
};

// A shared, readable and writable mapping of a memory file.
class Mapping {
  public:
    Mapping() = default;
    Mapping(Mapping&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Mapping& operator=(Mapping&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Mapping();

    // Maps the first `bytes` bytes (> 0) of `fd`. From 2 MiB on the address is a multiple of 2 MiB, so that
    // huge pages fit.
    static Status map(int fd, std::size_t bytes, Mapping& mapping);
    // Best effort: makes every page present now instead of at first use.
    void populate() const;
    // Like populate(), but only if the file has all of its pages already. Allocates nothing.
    void populate_if_allocated(int fd) const;
    // Best effort, before populate(): requests huge pages where the system grants them on request.
    void advise_huge_pages() const;

    std::byte* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }
    // Gives up ownership; the memory stays mapped.
    void* release() {
        bytes_ = 0;
        return std::exchange(data_, nullptr);
    }

  private:
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

// The size of a page of memory.
std::size_t page_bytes();
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

// Makes a zeroed memory file of `bytes` bytes (> 0). Its size is sealed, so a process that maps the file can
// rely on it.
Status make_memory_file(const char* name, std::size_t bytes, File& file);
// ok: `fd` is a memory file of at least `bytes` bytes that cannot shrink. A process that does not trust the
// sender can then map it safely. Otherwise invalid, and `why` says what is wrong.
Status check_memory_file(int fd, std::uint64_t bytes, const char*& why);

}  // namespace offpath::memory
