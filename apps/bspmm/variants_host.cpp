#include <shmem.h>

#include <string>

#include "bspmm/variants.h"

namespace bspmm {

const std::vector<Variant>& variants() {
    static const std::vector<Variant> all = {
        {"mpi-rma", "MPI_Get, MPI_Accumulate and MPI_Fetch_and_op, each with its flush", 0, start_mpi},
        {"shmem", "OpenSHMEM, blocking", 0, start_shmem},
        {"shmem-nbi", "OpenSHMEM, the next unit's tiles under way while one is computed", 1, start_shmem_nbi},
    };
    return all;
}

const char* shmem_library() {
    return SHMEM_VENDOR_STRING;
}

}  // namespace bspmm
