// The MPI_Win that the program holds for a window on the device: a window of the host's MPI on this process
// alone. It can be made even where the host's MPI has no windows between nodes, or none at the program's
// thread level. The host's MPI still handles names, info, error handlers and the program's attributes.
// Attributes that such a window would report wrongly are answered in window_handles.cpp.
#pragma once

#include <mpi.h>

namespace offpath::mpi {

// Local. MPI_WIN_NULL: the host's MPI cannot make one. Thread-safe.
MPI_Win make_handle(MPI_Info info);

// Local. Whether the host's MPI has as many communicators left as make_handle() may take: MPICH 4.0 crashes
// where it has none for a window. Thread-safe.
bool room_for_handle();

// For Fortran, where attributes are values. True: this is a window of ours, and `value` was set.
bool own_attribute(MPI_Win win, int keyval, MPI_Aint& value);

void open_handles();
void close_handles();

}  // namespace offpath::mpi
