#include "agreeing.h"

#include <fmt/format.h>

#include "runtime/runtime.h"

namespace offpath::mpi {
namespace {

int compare(MPI_Comm comm, bool mine, int* all) {
    const int word = mine ? 1 : 0;
    return PMPI_Allreduce(&word, all, 1, MPI_INT, MPI_MIN, comm);
}

}  // namespace

bool all_agree(Team& team, bool mine) {
    const std::uint64_t some_say_no = mine ? 0 : 1;
    const std::vector<std::uint64_t> all = combine_now(team, CombinedWords::How::largest, {some_say_no});
    return !all.empty() && all.front() == 0;
}

bool all_agree(MPI_Comm comm, bool mine) {
    int all = 0;
    const int error = compare(comm, mine, &all);
    return all_know(comm, mine && error == MPI_SUCCESS && all == 1);
}

bool all_know(MPI_Comm comm, bool mine) {
    int all = 0;
    const int error = compare(comm, mine, &all);
    if (error != MPI_SUCCESS && mine) throw NoAgreement{error};
    return error == MPI_SUCCESS && all == 1;
}

void say_no_agreement(MPI_Comm comm, const NoAgreement& why) {
    char name[MPI_MAX_OBJECT_NAME] = "", text[MPI_MAX_ERROR_STRING] = "";
    int length = 0, ranks = 0;
    PMPI_Error_string(why.error, text, &length);
    PMPI_Comm_get_name(comm, name, &length);
    PMPI_Comm_size(comm, &ranks);
    warn(Code::host_mpi,
         fmt::format("rank {}: the host's MPI failed on this rank while the {} ranks of {} agreed on what "
                     "they use the device for: {}; the call ends with an error",
                     runtime().rank, ranks, length > 0 ? name : "an unnamed communicator", text));
}

}  // namespace offpath::mpi
