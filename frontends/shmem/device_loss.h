// What goes on when the device of this process is lost. Where the memory of all PEs is mapped here, only
// large non-blocking transfers use it, and the processor copies them. Then the library goes on without the
// device, if that has ended and can write nothing any more. Otherwise the job ends, because nothing else
// reaches the heap of a PE on another node.
//
// Threads: any.
#pragma once

#include <offpath/types.h>

#include <atomic>

namespace offpath::shmem {

inline std::atomic<bool> device_is_lost{false};

// Whether this process uses no device any more.
inline bool is_without_device() {
    return device_is_lost.load(std::memory_order_relaxed);
}
// Whether this process maps the memory of all PEs.
bool all_pes_are_near();
// After `status` of the device: whether the library goes on without it.
bool goes_on_after(offpath_status_t status);

}  // namespace offpath::shmem
