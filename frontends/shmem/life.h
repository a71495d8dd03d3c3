// Start and end of the library in this process. Collective over the job.
#pragma once

namespace offpath::shmem {

// SHMEM_THREAD_SINGLE, FUNNELED, SERIALIZED, MULTIPLE.
inline constexpr int thread_single = 0, thread_funneled = 1, thread_serialized = 2, thread_multiple = 3;

// Attaches, makes the symmetric memory and maps the node's. `threads`: the level that the program asks for.
// Ends the job where that cannot be done. Not twice.
void start(int threads);
// Waits for all that is under way and for all PEs, then detaches. Symmetric memory is gone afterwards, but
// for the program's own data. Nothing before start() or after the first call.
void stop();

// All PEs meet, by their devices.
void meet();

}  // namespace offpath::shmem
