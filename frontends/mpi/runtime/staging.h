// Temporary buffers for data that cannot be sent or received in place: packed datatypes, and MPI_IN_PLACE of
// the all-to-alls. They come from memory that the device maps, and are kept for reuse up to a cap.
// Thread-safe.
#pragma once

#include <cstddef>

namespace offpath::mpi {

struct StagingBlock {
    void* address = nullptr;
    std::size_t bytes = 0;  // capacity
};

// Returns at least `bytes` bytes (> 0). A null address means out of memory.
StagingBlock acquire_staging(std::size_t bytes);
void release_staging(StagingBlock& block);
void close_staging();

}  // namespace offpath::mpi
