// Error handlers of the program's own, called when this library's state is whole: MPI calls them inside of
// its calls, some of which this library makes under its lock, or between two steps of its own. A handler may
// call MPI, and wait for other threads.
//
// MPI gets a function of ours in the place of each of the program's. Where an error is met while the thread
// holds handlers back, the handler is called when it lets them go, before the MPI call returns. Handlers that
// MPI has predefined are left to MPI. Any thread; what is held back is the thread's own.
#pragma once

#include <mpi.h>

namespace offpath::mpi {

inline thread_local int handlers_held = 0;     // how often
inline thread_local bool errors_wait = false;  // for that to end

inline void hold_handlers() {
    ++handlers_held;
}
void call_held_handlers();
inline void let_handlers_go() {
    if (--handlers_held == 0 && errors_wait) call_held_handlers();
}

// What MPI is given in the place of `function`, a handler of a C program; `function` itself if there are too
// many.
MPI_Comm_errhandler_function* stand_in_for_handler(MPI_Comm_errhandler_function* function);
// The same for a procedure of Fortran: not null.
MPI_Comm_errhandler_function* stand_in_for_procedure(void (*procedure)());

}  // namespace offpath::mpi
