// Error handlers made with MPICH's C++ bindings, which get an object in place of a handle: called by the
// program, and by receives of messages that the device carries.
#undef MPICH_SKIP_MPICXX
#include "check.h"

namespace {

constexpr int tag = 3, large = 40000;  // above the switch-over
MPI_Comm watched = MPI_COMM_NULL;
int handled = 0;
int met = MPI_SUCCESS;

void handle(MPI::Comm& comm, int* code, ...) {
    ++handled;
    MPI_Error_class(*code, &met);
    check::that(static_cast<MPI_Comm>(comm) == watched, "the handler got another communicator");
}

void expect(const char* what, int error_class) {
    check::that(handled == 1, "{}: the handler was called {} times", what, handled);
    check::that(met == error_class, "{}: the handler got error class {}", what, met);
    handled = 0;
    met = MPI_SUCCESS;
}

void cut_off(int next, int previous) {
    const std::vector<char> out(large, 1);
    std::vector<char> in(large);
    MPI_Request request;
    MPI_Isend(out.data(), large, MPI_BYTE, next, tag, watched, &request);
    MPI_Recv(in.data(), large - 1, MPI_BYTE, previous, tag, watched, MPI_STATUS_IGNORE);
    expect("a message that was cut off", MPI_ERR_TRUNCATE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void exchange(int next, int previous) {
    const std::vector<char> out(large, 2);
    std::vector<char> in(large);
    MPI_Sendrecv(out.data(), large, MPI_BYTE, next, tag, in.data(), large, MPI_BYTE, previous, tag, watched,
                 MPI_STATUS_IGNORE);
    check::that(in == out, "a message after the error");
}

}  // namespace

int main(int argc, char** argv) {
    MPI::Init(argc, argv);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    const int ranks = check::size_of(MPI_COMM_WORLD);
    const int next = (rank + 1) % ranks;
    const int previous = (rank + ranks - 1) % ranks;
    MPI::Intracomm comm = MPI::COMM_WORLD.Dup();
    watched = comm;
    MPI::Errhandler handler = MPI::Comm::Create_errhandler(handle);
    comm.Set_errhandler(handler);
    handler.Free();

    comm.Call_errhandler(MPI_ERR_OTHER);
    expect("a call by the program", MPI_ERR_OTHER);
    cut_off(next, previous);
    exchange(next, previous);

    comm.Free();
    return check::finish();
}
