#include "bspmm/variants.h"

namespace bspmm {

const std::vector<Variant>& variants() {
    static const std::vector<Variant> all = {
        {"mpi-rma", "MPI_Get, MPI_Accumulate and MPI_Fetch_and_op, each with its flush", 0, start_mpi},
        {"shmem", "OpenSHMEM, blocking", 0, start_shmem},
        {"shmem-nbi", "OpenSHMEM, the next unit's tiles under way while one is computed", 1, start_shmem_nbi},
        {"offload", "the same two units ahead, and the devices take units and add to C too", 2,
         start_offload},
        {"compute-offload", "the same, and workers on the devices' cores take units as well", 2,
         start_compute_offload},
    };
    return all;
}

const char* shmem_library() {
    return "offpath";
}

}  // namespace bspmm
