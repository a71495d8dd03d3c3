// A program of MPI 4 that uses sessions and never calls MPI_Init: it runs on the host's MPI, and is told so.
#include <mpi.h>

#include <cstdio>

int main() {
#if MPI_VERSION >= 4
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "offpath", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    int rank = 0, size = 0, sum = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    if (sum == size * (size - 1) / 2) return 0;
    std::fprintf(stderr, "the sum of %d ranks is %d\n", size, sum);
    return 1;
#else
    std::puts("this MPI has no sessions");
    return 77;
#endif
}
