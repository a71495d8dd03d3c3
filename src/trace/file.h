// File: the memory-mapped file that a process writes its trace to. The file grows by one chunk at a time, so
// it is no larger than what it holds. Ownership: trace.cpp has one for the process; it lives as long as the
// process. Threads: any.
#pragma once

#include "base/file_descriptor.h"
#include "base/status.h"
#include "trace/layout.h"

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

namespace offpath::trace {

struct About {
    std::string directory;  // it is made if it is not there
    std::string node, program;
    std::int32_t rank = -1, ranks = 0;  // -1: a device
    std::uint64_t most_bytes = 64 << 20;
};

class File {
  public:
    File() = default;
    ~File();
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    // Errors: system. `problem` says what failed.
    Status open(const About& about, std::string& problem);
    // A chunk for the calling thread; null, and a record is counted as dropped, if there is no room.
    ChunkHeader* take_chunk();
    // The number of a name, which is added if it is new. UINT16_MAX: there is no room for it.
    std::uint16_t name(std::string_view text);

  private:
    FileHeader& header() { return *reinterpret_cast<FileHeader*>(memory_); }
    bool grow(std::uint64_t bytes);
    ChunkHeader* drop();

    FileDescriptor file_;
    std::byte* memory_ = nullptr;
    std::size_t bytes_ = 0;
    std::atomic<bool> full_{false};  // there was no room for a chunk, so there are no more chunks
    std::mutex mutex_;
};

}  // namespace offpath::trace
