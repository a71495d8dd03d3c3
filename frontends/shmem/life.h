// Start and end of the library in this process. Collective over the job.
#pragma once

#include <offpath/types.h>

#include <cstdint>

namespace offpath::shmem {

// SHMEM_THREAD_SINGLE, FUNNELED, SERIALIZED, MULTIPLE.
inline constexpr int thread_single = 0, thread_funneled = 1, thread_serialized = 2, thread_multiple = 3;

// (start.cpp) Attaches to the device, makes the symmetric memory and maps that of the node's PEs. `threads`:
// the level that the program asks for. Ends the job if that fails. Must not be called twice.
void start(int threads);
// Waits for all outstanding operations and for all PEs, then detaches. Afterwards symmetric memory is gone,
// except the program's own data. Does nothing before start() or after the first call.
void stop();

// A barrier of all PEs, executed by their devices.
void meet();
offpath_status_t try_to_meet();

// For recovery.h: attaches again, and exposes symmetric memory to the new devices. `before_use`: called
// before any PE can use the new window. False: it was not possible, and no device can be used any more.
// Collective.
// OthersStart: a PE has lost its device before it had made its symmetric memory, so all PEs are to start
// again, with the device that this one has now.
bool attach_again(std::uint64_t limit_ns, void (*before_use)());
struct OthersStart {};

// For start(), of a PE that has not made its symmetric memory: ends the session and attaches again.
// Collective, together with attach_again() of other PEs.
bool attach_to_present(std::uint64_t limit_ns);

}  // namespace offpath::shmem
