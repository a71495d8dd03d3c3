// A host rank for measurements: a child process with buffers and a staging agent, and the proxy's three ways
// to its memory. Create it before any thread.
#pragma once

#include "memory/session_memory.h"

#include <cstddef>
#include <memory>

#include <sys/types.h>

namespace offpath::memory::bench {

class HostRank {
  public:
    // Two plain and two shared buffers of `bytes` bytes each. Throws std::runtime_error.
    explicit HostRank(std::size_t bytes);
    ~HostRank();
    HostRank(const HostRank&) = delete;
    HostRank& operator=(const HostRank&) = delete;

    SessionMemory& mapped() { return *direct_; }
    HostRange shared(int which, std::size_t bytes) const {
        return {static_cast<std::uint64_t>(which) + 1, 0, bytes};
    }
    // Null if the system does not allow it.
    SessionMemory* cma() { return direct_->general_back_end() == BackEnd::cma ? direct_.get() : nullptr; }
    SessionMemory& staged() { return *staged_; }
    HostRange plain(int which, std::size_t bytes) const { return {0, plain_[which], bytes}; }

    // Copies the first bytes of plain buffer 0 to plain buffer 1, as a proxy serves two ranks of one node: in
    // cache-sized chunks through a buffer of this process. With staged memory, reads and writes overlap.
    void copy(SessionMemory& memory, std::size_t bytes, std::size_t chunk);

  private:
    std::uint64_t plain_[2] = {};
    std::unique_ptr<SessionMemory> direct_, staged_;
    std::unique_ptr<std::byte[]> bounce_;
    pid_t pid_ = -1;
};

}  // namespace offpath::memory::bench
