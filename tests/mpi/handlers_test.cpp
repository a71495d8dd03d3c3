// Error handlers that call MPI themselves: point-to-point calls that get an error from the host's MPI, and
// messages that the handler and the program send afterwards, with the same tag. Argument: "single" for
// MPI_THREAD_SINGLE.
#include <cstring>

#include "check.h"

namespace {

constexpr int tag = 3, handlers_tag = 4, small = 100, large = 40000;  // the switch-over is between the two
int rank, next, previous;
int handled = 0;

// MPICH 5 may call a handler more than once for an error.
void talk(MPI_Comm*, int*, ...) {
    if (++handled > 1) return;
    int flag = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    check::that(flag == 0, "a message that nobody sent");
    const std::vector<char> words(large, static_cast<char>(rank));
    MPI_Send(words.data(), small, MPI_BYTE, next, handlers_tag, MPI_COMM_WORLD);
    MPI_Request request;
    MPI_Isend(words.data(), large, MPI_BYTE, next, tag, MPI_COMM_WORLD, &request);
    std::vector<char> in(large);
    MPI_Recv(in.data(), large, MPI_BYTE, previous, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check::that(in == std::vector<char>(large, static_cast<char>(previous)), "the handler's large message");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int class_of(int error) {
    int its_class = error;
    MPI_Error_class(error, &its_class);
    return its_class;
}

// After an error, checks the message that the handlers sent, and messages of all sizes in their order.
void go_on(const char* what, MPI_Comm comm) {
    check::that(handled >= 1, "{}: the handler was not called", what);
    handled = 0;
    std::vector<char> in(large);
    MPI_Status status;
    MPI_Recv(in.data(), large, MPI_BYTE, previous, handlers_tag, MPI_COMM_WORLD, &status);
    int bytes = 0;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    check::that(bytes == small && in[0] == static_cast<char>(previous),
                "{}: the handler's message of {} bytes", what, bytes);
    for (int size : {small, large, small, large}) {
        MPI_Request requests[2];
        const std::vector<char> out(static_cast<std::size_t>(size), static_cast<char>(rank + size));
        MPI_Irecv(in.data(), large, MPI_BYTE, previous, tag, comm, &requests[0]);
        MPI_Isend(out.data(), size, MPI_BYTE, next, tag, comm, &requests[1]);
        MPI_Wait(&requests[0], &status);
        PMPI_Get_count(&status, MPI_BYTE, &bytes);
        check::that(
            bytes == size && in[static_cast<std::size_t>(size) - 1] == static_cast<char>(previous + size),
            "{}: {} bytes after it are {}", what, size, bytes);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
}

void wrong_types(MPI_Comm comm, [[maybe_unused]] bool threads) {
    std::vector<char> memory(large);
    MPI_Datatype never_committed;
    MPI_Type_contiguous(4, MPI_BYTE, &never_committed);
    MPI_Request request;
    for (int count : {4, large / 4}) {
        int error = MPI_Isend(memory.data(), count, never_committed, next, tag, comm, &request);
        check::that(class_of(error) == MPI_ERR_TYPE, "a send with a wrong type: error {}", error);
        go_on("a send", comm);
#ifdef MPICH_NUMVERSION
        // With MPI_THREAD_MULTIPLE, MPICH 4.0 ends a program whose handler calls MPI. This library can only
        // correct what happens under its own lock.
        if (threads) break;
#endif
        error = MPI_Irecv(memory.data(), count, never_committed, previous, tag, comm, &request);
        check::that(class_of(error) == MPI_ERR_TYPE, "a receive with a wrong type: error {}", error);
        go_on("a receive", comm);
        error = MPI_Send(memory.data(), count, never_committed, next, tag, comm);
        check::that(class_of(error) == MPI_ERR_TYPE, "a blocking send with a wrong type: error {}", error);
        go_on("a blocking send", comm);
    }
    MPI_Type_free(&never_committed);
}

// Open MPI itself delivers nothing more to that rank after such an error.
#ifndef OPEN_MPI
void no_buffer(MPI_Comm comm) {
    std::vector<char> memory(small), buffer(MPI_BSEND_OVERHEAD + 8);
    MPI_Buffer_attach(buffer.data(), static_cast<int>(buffer.size()));
    const int error = MPI_Bsend(memory.data(), small, MPI_BYTE, next, tag, comm);
    check::that(class_of(error) == MPI_ERR_BUFFER, "a buffered send without room: error {}", error);
    go_on("a buffered send", comm);
    void* address = nullptr;
    int bytes = 0;
    MPI_Buffer_detach(&address, &bytes);
}
#endif

void truncation(MPI_Comm comm) {
    for (int form = 0; form < 4; ++form) {
        for (int size : {small, large}) {
            std::vector<char> in(large);
            const std::vector<char> out(static_cast<std::size_t>(size), 1);
            const int room = size - 10;
            MPI_Request requests[2];
            int error = MPI_SUCCESS;
            MPI_Isend(out.data(), size, MPI_BYTE, next, tag, comm, &requests[1]);
            if (form == 0) {
                error = MPI_Recv(in.data(), room, MPI_BYTE, previous, tag, comm, MPI_STATUS_IGNORE);
            } else {
                MPI_Irecv(in.data(), room, MPI_BYTE, previous, tag, comm, &requests[0]);
                MPI_Status status;
                if (form == 1) error = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
                for (int flag = 0; form == 2 && flag == 0 && error == MPI_SUCCESS;)
                    error = MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
                if (form == 3) {
                    MPI_Waitall(1, requests, &status);
                    error = status.MPI_ERROR;
                }
            }
// MPICH 5.0 reports success when the program's own error handler was called.
#if !defined(MPI_ABI) && !(defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 50000000)
            check::that(class_of(error) == MPI_ERR_TRUNCATE, "{} bytes, form {}: error {}", size, form,
                        error);
#endif
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
            go_on("a message that was cut off", comm);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    const int wanted =
        argc > 1 && std::strcmp(argv[1], "single") == 0 ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE;
    int provided = 0;
    MPI_Init_thread(&argc, &argv, wanted, &provided);
    if (provided < wanted) {
        std::puts("skipped: this MPI has no MPI_THREAD_MULTIPLE");
        MPI_Finalize();
        return 77;
    }
    rank = check::rank_of(MPI_COMM_WORLD);
    const int size = check::size_of(MPI_COMM_WORLD);
    next = (rank + 1) % size;
    previous = (rank + size - 1) % size;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(talk, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    // MPICH's waits call this handler.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Errhandler_free(&handler);
    wrong_types(comm, wanted == MPI_THREAD_MULTIPLE);
#ifndef OPEN_MPI
    no_buffer(comm);
#endif
    truncation(comm);
    MPI_Comm_free(&comm);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    return check::finish();
}
