// Memory that this process shares with its device, in a child that fork() makes. The child gets copies of its
// own, as of private memory: neither process sees what the other writes afterwards. fork() makes the copies
// before it returns, so it takes longer by the time that the present pages take to copy. A child that had no
// room for its copy faults if it touches the memory.
//
// A child made by a bare clone() shares the memory. posix_spawn(), vfork(), system() and popen() copy
// nothing.
//
// Threads: any.
#pragma once

#include <cstddef>

#include <sys/types.h>

namespace offpath::child_copies {

// Registers the handlers of fork() now, and not with the first mapping. Handlers that are registered later
// run before them.
void prepare_for_forks();

// `begin` is where `bytes` bytes of the memory file `fd`, from `offset` on, are mapped. The descriptor must
// stay open until forget().
void note(void* begin, std::size_t bytes, int fd, off_t offset = 0);
// The same with a copy of the descriptor. If there is none left, a child gets a copy of absent pages too.
void note_copy(void* begin, std::size_t bytes, int fd);
// Must come before the mapping ends. Nothing happens if it was not noted.
void forget(const void* begin);

}  // namespace offpath::child_copies
