// Cross-memory attach: reads and writes another process's memory with process_vm_readv and process_vm_writev.
// A process that permits it at first, and then no longer, is reached through its files (process_files.h).
// Synchronous. Threads: any number, also on one object.
#pragma once

#include "memory/file.h"
#include "memory/piece_lists.h"
#include "memory/process_files.h"

#include <atomic>
#include <memory>
#include <string>

#include <sys/types.h>

namespace offpath::memory {

// The client calls this before the proxy probes. Where the Yama module restricts access, it lets `tracer`
// read our memory. Any process that was permitted before is no longer. false: this kernel has no Yama.
bool allow_cma(pid_t tracer);

// ok: this process may read the memory of `pid`, and the 8 bytes at `address` there equal `value`. Otherwise
// unsupported, and `why_not` tells people what prevents it.
Status cma_probe(pid_t pid, std::uint64_t address, std::uint64_t value, std::string& why_not);

class Cma {
  public:
    // Opens the process that has this id now. If that process ends, transfers fail even if its id is used
    // again. `given_up` turns nonzero when the process wants nothing more from us; it is read before each
    // system call. Null: there is none. `writing` is raised around each write, before `given_up` is read. So
    // if the process sets `given_up` and then finds 0 there, it will not be written to any more.
    static Status open(pid_t pid, Cma& cma, const std::atomic<std::uint32_t>* given_up = nullptr,
                       std::atomic<std::uint32_t>* writing = nullptr);

    // ok: everything was copied. access: part of the range is not mapped with the needed access; bytes before
    // that part may have been copied. peer_lost: the process has ended. unsupported: the process does not
    // permit it, and did not when it was opened.
    Status read(std::uint64_t address, void* destination, std::size_t bytes) const;
    Status write(std::uint64_t address, const void* source, std::size_t bytes) const;
    // Copies many pieces, in order, with as few system calls as possible. An error is that of the first byte
    // that could not be copied; nothing after it was copied.
    Status read(std::span<const ForeignPiece> pieces) const;
    Status write(std::span<const ForeignPiece> pieces) const;

    // The same for memory of the process that this one has mapped.
    Status read_mapped(const std::byte* source, std::byte* destination, std::size_t bytes) const;
    Status write_mapped(std::byte* destination, const std::byte* source, std::size_t bytes) const;

  private:
    bool alive() const;
    pid_t pid_ = 0;
    File process_;  // pidfd
    std::unique_ptr<ProcessFiles> files_;
    const std::atomic<std::uint32_t>* given_up_ = nullptr;
    std::atomic<std::uint32_t>* writing_ = nullptr;
};

}  // namespace offpath::memory
