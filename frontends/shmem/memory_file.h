// Memory files and mappings of them, which is what symmetric memory is made of. Owned values; move-only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace offpath::shmem {

// Where mappings of at least this size begin; so memory in them may be aligned to as much.
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

    // Zeroed, of a size that nobody can change; pages come as they are used. False: `problem` says why.
    static bool make(const char* name, std::size_t bytes, MemoryFile& file, std::string& problem);
    // That of another process, by its number for it. False: it is gone, or not for us.
    static bool open_of(int pid, int fd, const FileIdentity& identity, std::size_t bytes, MemoryFile& file);

    // Null: no.
    std::byte* map(std::size_t bytes) const;
    // In the place of what is there.
    bool map_over(std::byte* address, std::size_t bytes) const;
    FileIdentity identity() const;
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

  private:
    int fd_ = -1;
};

void unmap(std::byte* address, std::size_t bytes);

}  // namespace offpath::shmem
