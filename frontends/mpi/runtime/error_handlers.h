// Calls the program's error handlers only when this library's state is consistent. MPI calls handlers inside
// its own calls, and this library makes some of those while it holds its lock or between two steps of its
// own. A handler may call MPI, and may wait for other threads.
//
// MPI is given a function of ours instead of each of the program's handlers. If an error occurs while the
// thread holds handlers back, the handler is called when it releases them, before the MPI call returns. MPI
// itself handles its predefined handlers. Any thread; held-back errors belong to their thread.
#pragma once

#include <mpi.h>

namespace offpath::mpi {

inline thread_local int handlers_held = 0;     // nesting depth
inline thread_local bool errors_wait = false;  // errors wait until it is 0

inline void hold_handlers() {
    ++handlers_held;
}
void call_held_handlers();
inline void let_handlers_go() {
    if (--handlers_held == 0 && errors_wait) call_held_handlers();
}

// The function given to MPI in place of `function`, a handler of a C program. It is `function` itself if
// there are too many.
MPI_Comm_errhandler_function* stand_in_for_handler(MPI_Comm_errhandler_function* function);
// The same for a Fortran procedure; never null.
MPI_Comm_errhandler_function* stand_in_for_procedure(void (*procedure)());

// While it exists, errors of calls on `comm` are only returned. For calls of our own on a new communicator
// that the program does not have yet: another thread could change the handler of any other one meanwhile.
// Local.
class NewErrorsReturned {
  public:
    explicit NewErrorsReturned(MPI_Comm comm) : comm_(comm) {
        PMPI_Comm_get_errhandler(comm_, &handler_);
        PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    }
    ~NewErrorsReturned() {
        PMPI_Comm_set_errhandler(comm_, handler_);
        PMPI_Errhandler_free(&handler_);
    }
    NewErrorsReturned(const NewErrorsReturned&) = delete;
    NewErrorsReturned& operator=(const NewErrorsReturned&) = delete;

  private:
    MPI_Comm comm_;
    MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
};

}  // namespace offpath::mpi
