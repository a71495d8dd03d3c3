// OwnMemory: this process's memory at addresses that somebody else names. What is not mapped so is an error,
// not a signal. Threads: one.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <cstdint>

#include <sys/types.h>

namespace offpath::link {

class OwnMemory {
  public:
    OwnMemory();
    ~OwnMemory();
    OwnMemory(const OwnMemory&) = delete;
    OwnMemory& operator=(const OwnMemory&) = delete;

    // ok: all of it. access: a part is not mapped, or not so (another part may have been copied).
    Status read(std::uint64_t address, void* destination, std::size_t bytes) const;
    Status write(std::uint64_t address, const void* source, std::size_t bytes) const;

    // Whether all of the range can be read or written now, so that it may be handed to a transport, which
    // would not survive finding out. unsupported: it cannot be told; then read() and write() are the way.
    Status readable(std::uint64_t address, std::size_t bytes) const;
    Status writable(std::uint64_t address, std::size_t bytes) const;

  private:
    Status copy(bool writes, std::uint64_t address, std::byte* local, std::size_t bytes) const;
    Status copy_by_file(bool writes, std::uint64_t address, std::byte* local, std::size_t bytes) const;
    Status present(int advice, std::uint64_t address, std::size_t bytes) const;

    const pid_t pid_;
    const std::size_t page_bytes_;
    bool by_process_ = false;  // process_vm_readv of ourselves is allowed; else through a memory file
    bool can_tell_ = false;    // madvise knows MADV_POPULATE_*
    int file_ = -1;
};

}  // namespace offpath::link
