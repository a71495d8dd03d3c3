// Cross-memory attach: reading and writing another process's memory by process_vm_readv and
// process_vm_writev. Synchronous. Threads: any number, on one object too.
#pragma once

#include "memory/file.h"
#include "memory/piece_lists.h"

#include <atomic>
#include <string>

#include <sys/types.h>

namespace offpath::memory {

// Client side, before the proxy probes: lets `tracer` read our memory where the Yama module asks for it, and
// nobody else, whoever was let in before. false: this kernel has no Yama.
bool allow_cma(pid_t tracer);

// ok when this process may read the memory of `pid` and the 8 bytes at `address` there equal `value`. Else
// unsupported, and `why_not` says for people what stands in the way.
Status cma_probe(pid_t pid, std::uint64_t address, std::uint64_t value, std::string& why_not);

class Cma {
  public:
    // The process as it is now: if it ends, transfers fail even if its id is used again. `given_up`: not 0
    // when the process wants nothing of us any more, looked at before each system call; null: none.
    static Status open(pid_t pid, Cma& cma, const std::atomic<std::uint32_t>* given_up = nullptr);

    // ok: all of it. access: part of the range is not mapped so in the process (a part in front of it may
    // have been copied); peer_lost: the process has ended; unsupported: it does not let us (any more).
    Status read(std::uint64_t address, void* destination, std::size_t bytes) const;
    Status write(std::uint64_t address, const void* source, std::size_t bytes) const;
    // Many pieces, in their order and by as few system calls as can be. An error is of the first byte that
    // could not be copied; nothing behind it was.
    Status read(std::span<const ForeignPiece> pieces) const;
    Status write(std::span<const ForeignPiece> pieces) const;

  private:
    bool alive() const;
    pid_t pid_ = 0;
    File process_;  // pidfd
    const std::atomic<std::uint32_t>* given_up_ = nullptr;
};

}  // namespace offpath::memory
