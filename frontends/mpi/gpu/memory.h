// GPU memory among the buffers that a program passes to MPI. The host must not touch it, and no offpath
// device can: the GPU's own driver library copies it to and from host memory.
//
// The libraries of CUDA (libcuda), ROCm (libamdhip64) and Level Zero (libze_loader) are found if the process
// has loaded them, before or after MPI_Init. None is needed to build or run. Without a library, a query costs
// a few nanoseconds. Memory that the driver moves between host and GPU on demand (managed, shared) counts as
// host memory. Threads: any.
#pragma once

#include <cstddef>

namespace offpath::mpi::gpu {

// Whether the process has loaded a driver library.
bool any_driver();

// Whether `address` is memory that the host must not touch.
bool is_device_memory(const void* address);

// Either side may be GPU memory. The copy is done on return; false: the driver refused.
bool copy(void* to, const void* from, std::size_t bytes);

// For the summary: counts buffers that were copied through host memory, and why.
void count_staged();
unsigned long staged();

}  // namespace offpath::mpi::gpu
