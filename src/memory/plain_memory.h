// Which of this process's memory is plain: private and anonymous, without properties that its pages would
// lose if they moved into a memory file. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace offpath::memory {

// False: the process has a device or a ring open that may have pinned pages (a network card, a GPU,
// io_uring).
bool no_device_is_open();

// Reads /proc/self/smaps, which takes milliseconds in a process with much memory. Returns the size of the
// pages that may move: huge pages where the kernel gives such memory huge pages and can give them to memory
// files, too. 0: not all of [begin, end) is plain, or it would lose its huge pages.
std::size_t page_of_plain_memory(std::uintptr_t begin, std::uintptr_t end);

// Whether the address is on the calling thread's stack.
bool is_on_stack(std::uintptr_t address);

}  // namespace offpath::memory
