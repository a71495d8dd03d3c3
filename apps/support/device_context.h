// What programs need that call offpath's C API beside MPI: a context of all ranks of MPI_COMM_WORLD, and
// errors as exceptions. One thread uses it. MPI must be initialized.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <stdexcept>
#include <string>

#include "support/mpi_program.h"

namespace mpi_support {

// Throws std::runtime_error, which names the call, if it returned an error.
inline void check(offpath_status_t status, const char* call) {
    if (status < 0) throw std::runtime_error(std::string(call) + ": " + offpath_status_string(status));
}

// Attaches this rank to the daemon of its node. Collective: it fails on all ranks or on none, with
// UsageError.
inline offpath_context_h attach_to_device() {
    int rank = 0, ranks = 1, rank_on_node = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank_on_node);
    MPI_Comm_free(&node);
    offpath_init_params_t params{};
    params.struct_size = sizeof params;
    params.threads = OFFPATH_THREADS_SINGLE;
    params.allgather = [](void*, const void* mine, std::size_t bytes, void* all) {
        const int count = static_cast<int>(bytes);
        return MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, MPI_COMM_WORLD);
    };
    params.rank = static_cast<std::uint32_t>(rank);
    params.size = static_cast<std::uint32_t>(ranks);
    params.local_rank = static_cast<std::uint32_t>(rank_on_node);
    offpath_context_h context = nullptr;
    if (const offpath_status_t status = offpath_init(&params, &context); status != OFFPATH_OK)
        throw UsageError(
            std::string("this variant needs an offpathd on every node, as offpath run starts them: ") +
            offpath_status_string(status));
    return context;
}

}  // namespace mpi_support
