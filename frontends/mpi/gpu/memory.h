// Memory of a GPU among the buffers that a program gives to MPI. The host must not touch it, and no device of
// ours can: it is copied to and from memory of the host by the GPU's own driver library.
//
// The libraries of CUDA (libcuda), ROCm (libamdhip64) and Level Zero (libze_loader) are found if the process
// has loaded them, before or after MPI_Init; none is needed to build or run. Where there is none a question
// costs a few nanoseconds. Memory that the driver moves between host and GPU on demand (managed, shared) is
// the host's. Threads: any.
#pragma once

#include <cstddef>

namespace offpath::mpi::gpu {

// Whether the process has loaded a driver library.
bool any_driver();

// Whether the host must not touch what lies at `address`.
bool is_device_memory(const void* address);

// Either side may be memory of a GPU. Done on return; false: the driver refused.
bool copy(void* to, const void* from, std::size_t bytes);

// For the summary: buffers that were copied through memory of the host, and why.
void count_staged();
unsigned long staged();

}  // namespace offpath::mpi::gpu
