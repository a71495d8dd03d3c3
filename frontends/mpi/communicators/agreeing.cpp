#include "agreeing.h"

#include <fmt/format.h>

#include <cstdlib>

#include "runtime/error_handlers.h"
#include "runtime/runtime.h"

namespace offpath::mpi {
namespace {

int compare(MPI_Comm comm, bool mine, int* all) {
    const int word = mine ? 1 : 0;
    return PMPI_Allreduce(&word, all, 1, MPI_INT, MPI_MIN, comm);
}

}  // namespace

bool all_agree(MPI_Comm comm, bool mine) {
    const ErrorsReturned errors_returned(comm);
    int all = 0;
    const int error = compare(comm, mine, &all);
    return all_know(comm, mine && error == MPI_SUCCESS && all == 1);
}

bool all_know(MPI_Comm comm, bool mine) {
    const ErrorsReturned errors_returned(comm);
    int all = 0;
    const int error = compare(comm, mine, &all);
    if (error != MPI_SUCCESS && mine) end_without_agreement(comm, error);
    return error == MPI_SUCCESS && all == 1;
}

void end_without_agreement(MPI_Comm comm, int error) {
    char name[MPI_MAX_OBJECT_NAME] = "", text[MPI_MAX_ERROR_STRING] = "";
    int length = 0, ranks = 0;
    PMPI_Error_string(error, text, &length);
    PMPI_Comm_get_name(comm, name, &length);
    PMPI_Comm_size(comm, &ranks);
    warn(Code::host_mpi,
         fmt::format(
             "rank {}: the host's MPI failed on this rank while the {} ranks of {} agreed on what they "
             "use the device for: {}; the others may go on without it, so the job ends",
             runtime().rank, ranks, length > 0 ? name : "an unnamed communicator", text));
    PMPI_Abort(MPI_COMM_WORLD, 2);
    std::abort();
}

}  // namespace offpath::mpi
