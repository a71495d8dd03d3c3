// Start and end of the library in this process. Collective over the job.
#pragma once

namespace offpath::shmem {

// SHMEM_THREAD_SINGLE, FUNNELED, SERIALIZED, MULTIPLE.
inline constexpr int thread_single = 0, thread_funneled = 1, thread_serialized = 2, thread_multiple = 3;

// Attaches to the device, makes the symmetric memory and maps that of the node's PEs. `threads`: the level
// that the program asks for. Ends the job if that fails. Must not be called twice.
void start(int threads);
// Waits for all outstanding operations and for all PEs, then detaches. Afterwards symmetric memory is gone,
// except the program's own data. Does nothing before start() or after the first call.
void stop();

// A barrier of all PEs, executed by their devices.
void meet();

}  // namespace offpath::shmem
