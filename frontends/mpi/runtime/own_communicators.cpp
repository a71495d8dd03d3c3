#include "own_communicators.h"

#include <algorithm>

namespace offpath::mpi {

MPI_Comm own_communicator(MPI_Comm like) {
    // Each rank says this tag to some others, before any message of the program can meet it.
    constexpr int tag = 0;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm made = MPI_COMM_NULL;
    PMPI_Comm_group(like, &group);
    // It takes messages only. The other calls take non-blocking collectives of `like`.
    PMPI_Comm_create_group(like, group, tag, &made);
    PMPI_Group_free(&group);
    if (made != MPI_COMM_NULL) PMPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    return made;
}

FirstIdentifiersKept::FirstIdentifiersKept() {
    std::generate(places_.begin(), places_.end(), [] { return own_communicator(MPI_COMM_SELF); });
}

FirstIdentifiersKept::~FirstIdentifiersKept() {
    // MPICH gives the handle first that was freed last.
    for (auto place = places_.rbegin(); place != places_.rend(); ++place)
        PMPI_Comm_free(&*place);
}

}  // namespace offpath::mpi
