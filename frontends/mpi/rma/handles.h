// The MPI_Win that the program holds for a window on the device: a window of the host's MPI on this process
// alone. So it can be made where the host's MPI has no windows between nodes, or none at the thread level
// that the program asked for, and names, info, error handlers and the program's attributes are the host's all
// the same. What such a window would tell wrongly of itself is answered here (handles.cpp).
#pragma once

#include <mpi.h>

namespace offpath::mpi {

// Local. MPI_WIN_NULL: the host's MPI cannot make one. Thread-safe.
MPI_Win make_handle(MPI_Info info);

// For Fortran, where attributes are values: whether `value` was set, since it is one of a window of ours.
bool own_attribute(MPI_Win win, int keyval, MPI_Aint& value);

void open_handles();
void close_handles();

}  // namespace offpath::mpi
