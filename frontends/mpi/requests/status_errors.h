// The errors of calls that complete several requests. Any thread.
#pragma once

#include <mpi.h>

#include <vector>

namespace offpath::mpi {

// Whether `error` is of the class MPI_ERR_IN_STATUS. An error is a code, and not always the class itself.
inline bool is_in_status(int error) {
    if (error == MPI_SUCCESS) return false;
    int its_class = MPI_SUCCESS;
    PMPI_Error_class(error, &its_class);
    return its_class == MPI_ERR_IN_STATUS;
}

// Reports errors of single requests as MPI_Waitall does.
inline int tell_errors(const std::vector<int>& errors, MPI_Status* statuses) {
    for (std::size_t i = 0; statuses != MPI_STATUSES_IGNORE && i < errors.size(); ++i)
        statuses[i].MPI_ERROR = errors[i];
    return MPI_ERR_IN_STATUS;
}

}  // namespace offpath::mpi
