// Residency: whether copying another process's memory can make the copying thread wait. A page that is not
// there may have to come from a file system that hangs, or from a userfaultfd that nobody serves; a thread
// that waits for such a page in process_vm_readv cannot be called back. So pages are looked at first, in
// /proc/PID/pagemap. What was seen of a page holds for a second, which keeps the look out of most copies, of
// a few bytes in a page whose neighbours are absent too.
//
// What can still wait: a page that was seen, is taken away within the second, and does not come back.
// Ownership: the session's memory. Threads: one, but for memory_file_at().
#pragma once

#include "memory/file.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <sys/types.h>

namespace offpath::memory {

// Addresses in another process.
struct AddressRange {
    std::uint64_t begin = 0, end = 0;
};

// The mapping of a memory file, or of shared anonymous memory, around `address`; empty: it is something else,
// or nothing. Reads /proc/PID/maps: takes long, beside the loop.
AddressRange memory_file_at(pid_t pid, std::uint64_t address);

class Residency {
  public:
    // Without /proc/PID/pagemap everything counts as resident.
    void open(pid_t pid);

    // Whether reading the range, or writing to it, waits for nothing. Pages of files may wait when they are
    // written to (for the file system), unless they are known to be memory files. Ranges that are asked for
    // with the same `now_ns` share their looks.
    bool resident(std::uint64_t address, std::size_t bytes, bool writes, std::uint64_t now_ns);
    // What memory_file_at() found.
    void learn(const AddressRange& memory_file, std::uint64_t now_ns);

  private:
    // 64 KiB and what was seen of their pages: a bit each, the lowest for the first.
    struct Block {
        std::uint64_t number = 0;  // plus one; 0: none
        std::uint64_t seen_ns = 0;
        std::uint64_t readable = 0, writable = 0;
    };
    struct MemoryFile {
        AddressRange range;
        std::uint64_t seen_ns = 0;
    };
    // Whether every page from `first` to before `end`, by number, is known to be as wanted.
    bool known(std::uint64_t first, std::uint64_t end, bool writes, std::uint64_t now_ns) const;
    // Whether all of it was looked at in this very moment.
    bool just_seen(std::uint64_t first, std::uint64_t end, std::uint64_t now_ns) const;
    bool look(std::uint64_t first, std::uint64_t end, bool writes, std::uint64_t now_ns);
    void remember(std::uint64_t number, std::span<const std::uint64_t> entries, std::uint64_t now_ns);
    bool in_memory_file(std::uint64_t address, std::uint64_t now_ns) const;

    File pagemap_;
    std::array<Block, 1024> blocks_{};  // by their number's last bits
    std::vector<MemoryFile> memory_files_;
};

}  // namespace offpath::memory
