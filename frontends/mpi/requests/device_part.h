// DevicePart: what a collective has told the device to do, in bytes. It is enough to run the collective again
// on the host's MPI (second_runs.h). Arrays of sizes and offsets are those of the operation.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace offpath::mpi {

struct DevicePart {
    enum class Shape : std::uint8_t {
        none,
        barrier,
        alltoall,
        pairs,  // all-to-all with sizes for each rank
        neighbors,
        allgather,
        allgatherv,
        bcast,
        gather,
        gatherv,
        scatter,
        scatterv,
        allreduce,
        reduce,
        reduce_scatter,        // with elements for each rank
        reduce_scatter_block,  // with the same number for each
        scan,
        exscan,
    };
    Shape shape = Shape::none;
    // As the device got them. Null `send`: in place.
    const void* send = nullptr;
    void* recv = nullptr;
    std::size_t size = 0;  // bytes of a block; elements of a reduction
    int root = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;  // of a reduction
    MPI_Op reduction = MPI_OP_NULL;

    bool reduces() const { return shape >= Shape::allreduce; }
};

}  // namespace offpath::mpi
