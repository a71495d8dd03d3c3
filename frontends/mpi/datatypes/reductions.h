// MPI's types and operations as the device knows them. The host reports combinations that MPI does not
// define, and runs user-defined operations. Pure look-up; any thread.
#pragma once

#include <mpi.h>
#include <offpath/collectives.h>

#include <cstddef>
#include <cstdint>

#include "runtime/selection.h"

namespace offpath::mpi {

struct Reducer {
    offpath_type_t type{};
    offpath_reduction_t reduction{};
};

// Whether results depend on the order of the operands: sums and products of floating-point numbers.
bool depends_on_order(const Reducer& reducer);

// Returns HostReason::none and sets `reducer` if the device can do it. All ranks get the same answer.
HostReason find_reducer(MPI_Datatype type, MPI_Op op, Reducer& reducer);

// The bytes that `count` operands span in memory; pairs of a value and an index have gaps.
inline std::size_t bytes_in_memory(MPI_Datatype type, std::size_t count) {
    MPI_Aint lower = 0;
    MPI_Aint extent = 0;
    PMPI_Type_get_extent(type, &lower, &extent);
    return count * static_cast<std::size_t>(extent);
}

// Whether MPI allows these buffers for a reduction; `count` is the number of elements that arrive in
// `recvbuf`. With 0 elements, buffers have no meaning; all ranks must come to the same answer.
bool plausible_operands(const void* sendbuf, const void* recvbuf, std::int64_t count, MPI_Datatype type,
                        MPI_Op op);

}  // namespace offpath::mpi
