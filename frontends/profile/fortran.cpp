// The front end's bindings for Fortran call the profiler's MPI_ functions here. This is what they need of the
// front end beside these: what no call that the profiler exports makes use of.
#include <mpi.h>

namespace offpath::mpi {

bool own_attribute(MPI_Win win, int keyval, MPI_Aint& value);
bool own_attribute(MPI_Win, int, MPI_Aint&) {
    return false;
}

MPI_Comm_errhandler_function* stand_in_for_procedure(void (*procedure)());
MPI_Comm_errhandler_function* stand_in_for_procedure(void (*)()) {
    return nullptr;
}

}  // namespace offpath::mpi
