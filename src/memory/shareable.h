// The memory files that this process has mapped and that another process of its user may map too: what
// HostAllocator has made, and what offpath_mem_share was given. Libraries of one process that hold the client
// each have a list of their own. Another library finds it by the name of offpath_find_shareable, since it
// cannot link the same copy.
//
// Ownership: a noted descriptor stays open until forget(). Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace offpath::memory {

struct Shareable {
    void* begin = nullptr;  // of the mapping, which is the file's beginning
    std::size_t bytes = 0;
    int fd = -1;
    std::uint64_t number = 0;  // never used again in this process
    std::uint64_t ended = 0;   // how many mappings have ended so far; also set if nothing was found
};

namespace shareable {

void note(void* begin, std::size_t bytes, int fd);
// The same with a copy of the descriptor, which forget() closes. Nothing happens if there is no descriptor
// left.
void note_copy(void* begin, std::size_t bytes, int fd);
// Call it before the mapping or the descriptor ends. Nothing happens if it was not noted.
void forget(const void* begin);
// False: the bytes are not all in one of the mappings.
bool find(const void* address, std::size_t bytes, Shareable& found);

}  // namespace shareable
}  // namespace offpath::memory

extern "C" __attribute__((visibility("default"))) bool offpath_find_shareable(
    const void* address, std::size_t bytes, offpath::memory::Shareable* found);
