// Point-to-point calls one by one: when each completes, errors, cancelling, freeing, and that a message
// arrives while its receiver makes no MPI call. The switch-over is 4096 bytes (CMakeLists.txt).
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "check.h"

namespace {

constexpr int large = 300000, middle = 5000, small = 100;
const int every_size[] = {0, 8, 60, 61, 62, small, 4095, 4096, middle, large};

int rank, size, next, previous;

std::vector<char> filled(int bytes, int seed) {
    std::vector<char> data(static_cast<std::size_t>(bytes));
    for (std::size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<char>(i * 31 + i / 256 + static_cast<std::size_t>(seed) * 77);
    return data;
}

double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void check_status(const MPI_Status& status, int source, int tag, int bytes, const char* where) {
    int count = -1, elements = -1, cancelled = 1;
    PMPI_Get_count(&status, MPI_BYTE, &count);
    PMPI_Get_elements(&status, MPI_BYTE, &elements);
    PMPI_Test_cancelled(&status, &cancelled);
    check::that(status.MPI_SOURCE == source && status.MPI_TAG == tag && count == bytes && elements == bytes &&
                    cancelled == 0,
                "{}: status has source {}, tag {}, {} bytes, cancelled {}; {}, {}, {} were expected", where,
                status.MPI_SOURCE, status.MPI_TAG, count, cancelled, source, tag, bytes);
}

// The data of a posted receive arrive while the receiver only looks at its memory.
void arrives_at_a_busy_receiver() {
    std::vector<char> in(large, 0), out = filled(large, 3);
    out.back() = 1;
    MPI_Request requests[2];
    MPI_Irecv(in.data(), large, MPI_BYTE, previous, 1, MPI_COMM_WORLD, &requests[0]);
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(out.data(), large, MPI_BYTE, next, 1, MPI_COMM_WORLD, &requests[1]);
    const volatile char* last = in.data() + large - 1;
    const double give_up = now() + 20;
    while (*last == 0 && now() < give_up) {
    }
    check::that(*last == 1, "a message did not arrive while its receiver was busy");
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check::that(in == out, "a message to a busy receiver is wrong");
}

void sendrecv() {
    for (int bytes : every_size) {
        const std::vector<char> out = filled(bytes, rank), expected = filled(bytes, previous);
        std::vector<char> in(static_cast<std::size_t>(bytes) + 3, 9), both = out;
        MPI_Status status;
        MPI_Sendrecv(out.data(), bytes, MPI_BYTE, next, 2, in.data(), bytes + 3, MPI_BYTE, previous, 2,
                     MPI_COMM_WORLD, &status);
        check_status(status, previous, 2, bytes, "sendrecv");
        in.resize(expected.size());
        check::that(in == expected, "sendrecv of {} bytes", bytes);
        MPI_Sendrecv_replace(both.data(), bytes, MPI_BYTE, next, 3, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD,
                             &status);
        check_status(status, previous, 3, bytes, "sendrecv_replace");
        check::that(both == expected, "sendrecv_replace of {} bytes", bytes);
    }
}

void nobody() {
    std::vector<char> data(large, 5);
    MPI_Status status;
    MPI_Request request;
    MPI_Send(data.data(), large, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Recv(data.data(), large, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    check::that(status.MPI_SOURCE == MPI_PROC_NULL, "a receive from nobody");
    MPI_Irecv(data.data(), large, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    MPI_Sendrecv(data.data(), large, MPI_BYTE, MPI_PROC_NULL, 0, data.data(), large, MPI_BYTE, MPI_PROC_NULL,
                 0, MPI_COMM_WORLD, &status);
    int flag = 0;
    MPI_Iprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, &status);
    check::that(flag == 1 && status.MPI_SOURCE == MPI_PROC_NULL, "a probe of nobody");
}

// A synchronous send is not done before its receive. A buffered one is done before there is a receive.
void modes() {
    std::vector<char> in(large), attached(large + MPI_BSEND_OVERHEAD + 1000);
    for (int bytes : {61, small, middle, large}) {
        const std::vector<char> out = filled(bytes, rank);
        MPI_Request request;
        MPI_Status status;
        int flag = 0;
        MPI_Issend(out.data(), bytes, MPI_BYTE, next, 4, MPI_COMM_WORLD, &request);
        PMPI_Barrier(MPI_COMM_WORLD);
        for (const double until = now() + 0.05; now() < until;)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        check::that(flag == 0, "a synchronous send of {} bytes was done before its receive", bytes);
        PMPI_Barrier(MPI_COMM_WORLD);
        MPI_Recv(in.data(), large, MPI_BYTE, previous, 4, MPI_COMM_WORLD, &status);
        check_status(status, previous, 4, bytes, "issend");
        check::that(
            std::memcmp(in.data(), filled(bytes, previous).data(), static_cast<std::size_t>(bytes)) == 0,
            "a synchronous send of {} bytes", bytes);
        MPI_Wait(&request, MPI_STATUS_IGNORE);

        MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
        std::vector<char> mine = out;
        MPI_Bsend(mine.data(), bytes, MPI_BYTE, next, 5, MPI_COMM_WORLD);
        std::fill(mine.begin(), mine.end(), 0);
        PMPI_Barrier(MPI_COMM_WORLD);
        MPI_Recv(in.data(), large, MPI_BYTE, previous, 5, MPI_COMM_WORLD, &status);
        check::that(
            std::memcmp(in.data(), filled(bytes, previous).data(), static_cast<std::size_t>(bytes)) == 0,
            "a buffered send of {} bytes", bytes);
        void* address;
        int length;
        MPI_Buffer_detach(&address, &length);

        MPI_Irecv(in.data(), large, MPI_BYTE, previous, 6, MPI_COMM_WORLD, &request);
        PMPI_Barrier(MPI_COMM_WORLD);
        MPI_Rsend(out.data(), bytes, MPI_BYTE, next, 6, MPI_COMM_WORLD);
        MPI_Wait(&request, &status);
        check_status(status, previous, 6, bytes, "rsend");
    }
}

int class_of(int error) {
    int its_class = error;
    MPI_Error_class(error, &its_class);
    return its_class;
}

// MPICH 5.0 reports success when the program's own error handler was called.
#if defined(MPI_ABI) || (defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 50000000)
constexpr bool counts_errors = false;
#else
constexpr bool counts_errors = true;
#endif
int errors_handled = 0;

void count_error(MPI_Comm*, int*, ...) {
    ++errors_handled;
}

// A message that is too long is an error of its receive, but not of its sender. The next message is intact.
void truncation() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Errhandler counting = MPI_ERRORS_RETURN;
    if (counts_errors) MPI_Comm_create_errhandler(count_error, &counting);
    MPI_Comm_set_errhandler(comm, counting);
    // MPICH's waits call this handler.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting);
    if (counts_errors) MPI_Errhandler_free(&counting);
    for (int bytes : {small, middle, large}) {
        for (int room : {0, 40, 61, 80, 4500, 200000}) {
            if (room >= bytes) continue;
            for (int form = 0; form < 4; ++form) {
                std::vector<char> in(static_cast<std::size_t>(room) + 16, 7), after(middle);
                const std::vector<char> out = filled(bytes, rank);
                MPI_Request requests[3];
                int error = MPI_SUCCESS;
                if (form == 0) MPI_Irecv(in.data(), room, MPI_BYTE, previous, 7, comm, &requests[0]);
                if (form == 3)
                    MPI_Irecv(in.data(), room, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[0]);
                PMPI_Barrier(MPI_COMM_WORLD);
                MPI_Isend(out.data(), bytes, MPI_BYTE, next, 7, comm, &requests[1]);
                MPI_Isend(out.data(), middle < bytes ? middle : bytes, MPI_BYTE, next, 7, comm, &requests[2]);
                if (form == 0) {
                    MPI_Status statuses[1];
                    error = MPI_Waitall(1, requests, statuses);
                    check::that(class_of(error) == MPI_ERR_IN_STATUS, "waitall returned {}", error);
                    error = statuses[0].MPI_ERROR;
                } else if (form == 1) {
                    error = MPI_Recv(in.data(), room, MPI_BYTE, previous, 7, comm, MPI_STATUS_IGNORE);
                } else if (form == 2) {
                    error = MPI_Recv(in.data(), room, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
                                     MPI_STATUS_IGNORE);
                } else {
                    for (int flag = 0; flag == 0 && error == MPI_SUCCESS;)
                        error = MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
                }
                // In a wait for several requests, MPI libraries differ in the handler that they call.
                check::that(form == 0 || !counts_errors || errors_handled == 1,
                            "{} bytes into {}, form {}: {} errors handled", bytes, room, form,
                            errors_handled);
                errors_handled = 0;
                check::that(class_of(error) == MPI_ERR_TRUNCATE, "{} bytes into {}, form {}: error {}", bytes,
                            room, form, error);
                check::that(std::count(in.begin() + room, in.end(), 7) == 16, "written behind {} bytes",
                            room);
                MPI_Status status;
                MPI_Recv(after.data(), middle, MPI_BYTE, previous, 7, comm, &status);
                check_status(status, previous, 7, middle < bytes ? middle : bytes, "after truncation");
                error = MPI_Waitall(2, requests + 1, MPI_STATUSES_IGNORE);
                check::that(error == MPI_SUCCESS, "the sender of a truncated message got {}", error);
            }
        }
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&comm);
}

// Cancelled receives do not change the order of the others.
void cancelling() {
    for (int capacity : {8, small, large}) {
        for (int source : {previous, int{MPI_ANY_SOURCE}}) {
            std::vector<char> cancelled_in(large, 1), in(large, 2), out = filled(large, rank);
            MPI_Request cancelled, requests[2];
            MPI_Irecv(cancelled_in.data(), capacity, MPI_BYTE, source, 8, MPI_COMM_WORLD, &cancelled);
            MPI_Irecv(in.data(), large, MPI_BYTE, previous, 8, MPI_COMM_WORLD, &requests[0]);
            MPI_Cancel(&cancelled);
            MPI_Status status;
            MPI_Wait(&cancelled, &status);
            int flag = 0;
            MPI_Test_cancelled(&status, &flag);
            check::that(flag != 0, "a receive of {} bytes was not cancelled", capacity);
            PMPI_Barrier(MPI_COMM_WORLD);
            MPI_Isend(out.data(), large, MPI_BYTE, next, 8, MPI_COMM_WORLD, &requests[1]);
            MPI_Wait(&requests[0], &status);
            check_status(status, previous, 8, large, "after a cancelled receive");
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
            check::that(in == filled(large, previous), "the message after a cancelled receive is wrong");
            check::that(cancelled_in == std::vector<char>(large, 1), "a cancelled receive was written to");
            // The numbers of messages continue.
            MPI_Irecv(in.data(), large, MPI_BYTE, previous, 8, MPI_COMM_WORLD, &requests[0]);
            PMPI_Barrier(MPI_COMM_WORLD);
            MPI_Send(out.data(), middle, MPI_BYTE, next, 8, MPI_COMM_WORLD);
            MPI_Wait(&requests[0], &status);
            check_status(status, previous, 8, middle, "after that");
        }
    }
    // A receive that is matched cannot be cancelled.
    std::vector<char> in(large), out = filled(large, rank);
    MPI_Request receive, send;
    MPI_Irecv(in.data(), large, MPI_BYTE, previous, 9, MPI_COMM_WORLD, &receive);
    MPI_Isend(out.data(), large, MPI_BYTE, next, 9, MPI_COMM_WORLD, &send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_Cancel(&receive);
    MPI_Status status;
    MPI_Wait(&receive, &status);
    check_status(status, previous, 9, large, "a receive that was cancelled too late");
    check::that(in == filled(large, previous), "a receive that was cancelled too late");
}

void freeing() {
    // A communicator, a datatype and a request are freed while a message is outstanding.
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Datatype pairs;
    MPI_Type_vector(large / 16, 2, 4, MPI_INT, &pairs);
    MPI_Type_commit(&pairs);
    std::vector<int> out(large / 4), in(large / 4, -1);
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<int>(i) + rank * 1000000;
    MPI_Request receive, send;
    MPI_Irecv(in.data(), 1, pairs, MPI_ANY_SOURCE, 1, comm, &receive);
    MPI_Isend(out.data(), 1, pairs, next, 1, comm, &send);
    MPI_Request_free(&send);
    MPI_Comm_free(&comm);
    MPI_Type_free(&pairs);
    MPI_Status status;
    MPI_Wait(&receive, &status);
    bool good = true;
    for (std::size_t i = 0; i < in.size(); ++i) {
        const bool element = i % 4 < 2 && i / 4 < large / 16;
        good = good && in[i] == (element ? static_cast<int>(i) + previous * 1000000 : -1);
    }
    check::that(good, "a message whose communicator and datatype were freed");
    PMPI_Barrier(MPI_COMM_WORLD);
}

// A persistent message still works when its communicator has been freed.
void persistent_outlives() {
    for (int bytes : {small, large}) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        const std::vector<char> out = filled(bytes, rank), expected = filled(bytes, previous);
        std::vector<char> in(static_cast<std::size_t>(bytes));
        MPI_Request requests[2];
        MPI_Recv_init(in.data(), bytes, MPI_BYTE, previous, 1, comm, &requests[0]);
        MPI_Send_init(out.data(), bytes, MPI_BYTE, next, 1, comm, &requests[1]);
        MPI_Comm_free(&comm);
        check::that(comm == MPI_COMM_NULL, "a freed communicator's handle");
        for (int i = 0; i < 3; ++i) {
            std::fill(in.begin(), in.end(), 0);
            MPI_Startall(2, requests);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            check::that(in == expected, "a persistent message of {} bytes on a freed communicator", bytes);
        }
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
    }
}

// MPI_Comm_disconnect waits for messages whose requests were freed.
void disconnecting() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    std::vector<char> data = filled(large, 1);
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) {
        MPI_Isend(data.data(), large, MPI_BYTE, size - 1, 1, comm, &request);
    } else if (rank == size - 1) {
        std::fill(data.begin(), data.end(), 0);
        MPI_Irecv(data.data(), large, MPI_BYTE, MPI_ANY_SOURCE, 1, comm, &request);
    }
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    MPI_Comm_disconnect(&comm);
    check::that(data == filled(large, 1), "a message on a communicator that was disconnected");
    if (rank == 0) std::fill(data.begin(), data.end(), 0);
    PMPI_Barrier(MPI_COMM_WORLD);
}

// The message ends inside a derived element. That part arrives, and MPI_Get_elements counts it.
void parts_of_elements() {
    MPI_Datatype triple;
    MPI_Type_vector(3, 1, 2, MPI_INT, &triple);
    MPI_Type_commit(&triple);
    for (int ints : {11, 2000}) {
        std::vector<int> out(static_cast<std::size_t>(ints)), in(12000, -1);
        for (int i = 0; i < ints; ++i)
            out[static_cast<std::size_t>(i)] = i + rank;
        MPI_Request request;
        MPI_Irecv(in.data(), 2000, triple, previous, 10, MPI_COMM_WORLD, &request);
        MPI_Send(out.data(), ints, MPI_INT, next, 10, MPI_COMM_WORLD);
        MPI_Status status;
        MPI_Wait(&request, &status);
        int elements = 0, count = 0;
        MPI_Get_elements(&status, triple, &elements);
        MPI_Get_count(&status, triple, &count);
        check::that(elements == ints && count == MPI_UNDEFINED, "{} ints as triples: {} elements, count {}",
                    ints, elements, count);
        bool good = true;
        for (int i = 0; i < ints; ++i)
            good = good && in[static_cast<std::size_t>(i / 3 * 5 + i % 3 * 2)] == i + previous;
        check::that(good, "{} ints received as triples", ints);
    }
    MPI_Type_free(&triple);
}

// A send waits for a receiver that is in a collective call and has posted its receive, from any source.
void a_receiver_in_a_collective() {
    std::vector<char> in(large), out = filled(large, rank);
    MPI_Request request;
    MPI_Irecv(in.data(), large, MPI_BYTE, MPI_ANY_SOURCE, 11, MPI_COMM_WORLD, &request);
    if (rank % 2 == 0) MPI_Send(out.data(), large, MPI_BYTE, next, 11, MPI_COMM_WORLD);
    PMPI_Barrier(MPI_COMM_WORLD);
    if (rank % 2 != 0) MPI_Send(out.data(), large, MPI_BYTE, next, 11, MPI_COMM_WORLD);
    MPI_Status status;
    MPI_Wait(&request, &status);
    check_status(status, previous, 11, large, "a receiver in a collective");
    check::that(in == filled(large, previous), "a message to a receiver in a collective");
}

// There are more large sends than may be on the device at once. They end while their receiver, which has
// posted its receives, is in a collective of the host's MPI.
void many_large_sends() {
    constexpr int messages = 1100, bytes = 20000;
    const std::vector<char> out = filled(bytes, 7);
    std::vector<char> in(rank == 0 ? std::size_t{messages} * bytes : 0);
    std::vector<MPI_Request> requests(messages);
    for (int i = 0; i < messages && rank == 0; ++i)
        MPI_Irecv(in.data() + std::size_t{bytes} * static_cast<std::size_t>(i), bytes, MPI_BYTE,
                  MPI_ANY_SOURCE, 20, MPI_COMM_WORLD, &requests[static_cast<std::size_t>(i)]);
    for (int i = 0; i < messages && rank == 1; ++i)
        MPI_Isend(out.data(), bytes, MPI_BYTE, 0, 20, MPI_COMM_WORLD, &requests[static_cast<std::size_t>(i)]);
    if (rank == 1) MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) return;
    MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE);
    for (std::size_t i = 0; i < in.size(); i += bytes)
        check::that(std::equal(out.begin(), out.end(), in.begin() + static_cast<std::ptrdiff_t>(i)),
                    "message {} of many", i / bytes);
}

// offpath's own waits, for offloaded collectives and windows, advance pending receives. The message is larger
// than a device stores for a receiver that does not look.
void waits_look_after_receives() {
    constexpr int bytes = 270 << 20;
    std::vector<char> data(rank < 2 ? bytes : 0, static_cast<char>(rank));
    int numbers[2] = {rank, rank};
    MPI_Win win;
    MPI_Win_create(numbers, sizeof numbers, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Group all, other;
    MPI_Win_get_group(win, &all);
    const int partner = 1 - rank;
    MPI_Group_incl(all, 1, &partner, &other);
    const auto collective = [&] {
        MPI_Request request;
        std::vector<char> from(5000 * static_cast<std::size_t>(size)), to(from.size());
        MPI_Ialltoall(from.data(), 5000, MPI_BYTE, to.data(), 5000, MPI_BYTE, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    };
    const auto fence = [&] { MPI_Win_fence(0, win); };
    const auto started = [&] {
        if (rank == 1) MPI_Win_post(other, 0, win);
        if (rank == 0) MPI_Win_start(other, 0, win);
        if (rank == 0) MPI_Win_complete(win);
        if (rank == 1) MPI_Win_wait(win);
    };
    const auto posted = [&] {
        if (rank == 0) MPI_Win_post(other, 0, win);
        if (rank == 1) MPI_Win_start(other, 0, win);
        if (rank == 1) MPI_Win_complete(win);
        if (rank == 0) MPI_Win_wait(win);
    };
    const auto past = [&](const char* what, auto wait) {
        MPI_Request request;
        if (rank == 0) MPI_Irecv(data.data(), bytes, MPI_BYTE, MPI_ANY_SOURCE, 21, MPI_COMM_WORLD, &request);
        if (rank == 1) MPI_Send(data.data(), bytes, MPI_BYTE, 0, 21, MPI_COMM_WORLD);
        wait();
        if (rank != 0) return;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check::that(data.front() == 1 && data.back() == 1, "a message that came in {}", what);
        data.front() = data.back() = 0;
    };
    past("a wait for a collective", collective);
    past("a fence", fence);
    past("MPI_Win_start", started);
    past("MPI_Win_wait", posted);
    MPI_Group_free(&other);
    MPI_Group_free(&all);
    MPI_Win_free(&win);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    rank = check::rank_of(MPI_COMM_WORLD);
    size = check::size_of(MPI_COMM_WORLD);
    next = (rank + 1) % size;
    previous = (rank + size - 1) % size;
    const std::pair<const char*, void (*)()> parts[] = {
        // The host's MPI alone fails this.
        {"busy", size > 1 && std::getenv("LD_PRELOAD") != nullptr ? arrives_at_a_busy_receiver : nobody},
        {"sendrecv", sendrecv},
        {"nobody", nobody},
        {"modes", modes},
        // In messages to the same rank, Open MPI 4.1 writes past the receive without an error.
        {"truncation", size > 1 ? truncation : nobody},
        {"cancelling", cancelling},
        {"freeing", freeing},
        {"persistent", persistent_outlives},
        {"disconnecting", size > 1 ? disconnecting : nobody},
        {"parts", parts_of_elements},
        {"collective", size > 1 ? a_receiver_in_a_collective : nobody},
        {"many", size > 1 ? many_large_sends : nobody},
        {"waits", size == 2 ? waits_look_after_receives : nobody},
    };
    for (const auto& [name, part] : parts) {
        if (argc > 1 && std::strcmp(argv[1], name) != 0) continue;
        part();
        PMPI_Barrier(MPI_COMM_WORLD);
    }
    return check::finish();
}
