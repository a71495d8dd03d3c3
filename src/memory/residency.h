// Residency: tells whether copying another process's memory can block the copying thread. An absent page may
// have to come from a file system that does not answer, or from a userfaultfd that no thread serves. A thread
// that waits for such a page in process_vm_readv cannot be interrupted. So pages are first looked up in
// /proc/PID/pagemap. A result holds for one second, so most copies need no new look-up.
//
// A copy can still block: when a page was present, is taken away within the second, and does not come back.
// Ownership: the session's memory. Threads: one, except for memory_file_at().
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

// The mapping of a memory file, or of shared anonymous memory, around `address`. Empty: the mapping is of
// another kind, or there is none. Reads /proc/PID/maps, which is slow: call it outside the proxy's loop.
AddressRange memory_file_at(pid_t pid, std::uint64_t address);

class Residency {
  public:
    // Without /proc/PID/pagemap everything counts as resident.
    void open(pid_t pid);

    // Whether reading or writing the range blocks on nothing. A write to pages of a file may block on the
    // file system, unless they are known to be a memory file's. Calls with the same `now_ns` share their
    // look-ups.
    bool resident(std::uint64_t address, std::size_t bytes, bool writes, std::uint64_t now_ns);
    // Remembers a result of memory_file_at().
    void learn(const AddressRange& memory_file, std::uint64_t now_ns);

  private:
    // What was seen of the pages of 64 KiB: one bit per page, the lowest bit for the first.
    struct Block {
        std::uint64_t number = 0;  // plus one; 0: none
        std::uint64_t seen_ns = 0;
        std::uint64_t readable = 0, writable = 0;
    };
    struct MemoryFile {
        AddressRange range;
        std::uint64_t seen_ns = 0;
    };
    // Whether every page number in [first, end) is known to be present as needed.
    bool known(std::uint64_t first, std::uint64_t end, bool writes, std::uint64_t now_ns) const;
    // Whether all of these pages were looked up with the same `now_ns`.
    bool just_seen(std::uint64_t first, std::uint64_t end, std::uint64_t now_ns) const;
    bool look(std::uint64_t first, std::uint64_t end, bool writes, std::uint64_t now_ns);
    void remember(std::uint64_t number, std::span<const std::uint64_t> entries, std::uint64_t now_ns);
    bool in_memory_file(std::uint64_t address, std::uint64_t now_ns) const;

    File pagemap_;
    std::array<Block, 1024> blocks_{};  // indexed by the last bits of the block's number
    std::vector<MemoryFile> memory_files_;
};

}  // namespace offpath::memory
