// Memory files and their mappings, of which symmetric memory is made. Owned values; move-only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace offpath::shmem {

// Mappings of at least this size begin at a multiple of it, so memory in them can have that alignment.
inline constexpr std::size_t largest_alignment = std::size_t{32} << 20;

// Names a file on this system.
struct FileIdentity {
    std::uint64_t device = 0, inode = 0;
    friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

class MemoryFile {
  public:
    MemoryFile() = default;
    explicit MemoryFile(int fd) : fd_(fd) {}
    MemoryFile(MemoryFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    MemoryFile& operator=(MemoryFile&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~MemoryFile();

    // Makes a zeroed file of fixed size; its pages are made on first use. False: `problem` says why.
    static bool make(const char* name, std::size_t bytes, MemoryFile& file, std::string& problem);
    // Opens a file of another process by that process's descriptor number. False: it is gone, or access was
    // refused.
    static bool open_of(int pid, int fd, const FileIdentity& identity, std::size_t bytes, MemoryFile& file);

    // Null: it failed.
    std::byte* map(std::size_t bytes) const;
    // Maps the file over the existing mapping at `address`.
    bool map_over(std::byte* address, std::size_t bytes) const;
    FileIdentity identity() const;
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

  private:
    int fd_ = -1;
};

void unmap(std::byte* address, std::size_t bytes);

}  // namespace offpath::shmem
