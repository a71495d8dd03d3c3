// SharedPages: ordinary memory of a client whose pages lie in a memory file that this process maps, too. The
// page at an address of the client is at the same offset of the file. So bytes at any address of the client
// are reached by one pointer here, or by `cma`: both see the same memory, and either may be used at any time.
//
// The file is mapped in windows of 1 GiB, which stay until the session ends. So a pointer remains valid after
// its pages were forgotten: it then leads to memory that nobody uses. Threads: one.
#pragma once

#include "memory/file.h"

#include <cstdint>
#include <map>

namespace offpath::memory {

class SharedPages {
  public:
    static constexpr std::uint64_t window_bytes = std::uint64_t{1} << 30;
    static constexpr std::size_t most_windows = 64, most_ranges = 4096;

    SharedPages() = default;
    ~SharedPages();
    SharedPages(const SharedPages&) = delete;
    SharedPages& operator=(const SharedPages&) = delete;

    // The client has put the pages of [address, address + bytes) into `file`, which is the same at each call.
    // invalid, with `why`: not whole pages, or no memory file of that size that cannot shrink. memory: over
    // the caps, or no address space.
    Status add(std::uint64_t address, std::uint64_t bytes, File file, const char*& why);
    // The client has taken pages of the range away from there.
    void forget(std::uint64_t address, std::uint64_t bytes);

    bool empty() const { return ranges_.empty(); }
    // The first bytes of [address, address + bytes) (bytes > 0) that lie together: behind `pointer`, or, if
    // it is null, in no shared page.
    struct Run {
        std::byte* pointer = nullptr;
        std::uint64_t bytes = 0;
    };
    Run run(std::uint64_t address, std::uint64_t bytes) const;

  private:
    bool map(std::uint64_t window);

    File file_;
    std::map<std::uint64_t, std::uint64_t>
        ranges_;                                   // first address to the end; they neither overlap nor touch
    std::map<std::uint64_t, std::byte*> windows_;  // by address divided by their size
};

}  // namespace offpath::memory
