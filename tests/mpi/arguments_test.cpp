// Wrong arguments: the user gets what the host's MPI says about them, both error codes and error handlers.
#include "check.h"

namespace {

int handler_calls = 0;
void on_error(MPI_Comm*, int*, ...) {
    ++handler_calls;
}

template <typename Offloaded, typename Host>
void same(const char* what, Offloaded offloaded, Host host) {
    handler_calls = 0;
    const int expected = host();
    const int host_calls = handler_calls;
    handler_calls = 0;
    const int got = offloaded();
    int expected_class = 0;
    int got_class = 0;
    PMPI_Error_class(expected, &expected_class);
    PMPI_Error_class(got, &got_class);
    check::that(expected_class != MPI_SUCCESS, "{}: the host's MPI accepts it", what);
    check::that(expected_class == got_class, "{}: error class {} instead of {}", what, got_class,
                expected_class);
    // It runs once, except for neighbours without a topology in Open MPI 4.1.
    check::that(host_calls > 0 && handler_calls == host_calls,
                "{}: the error handler ran {} times instead of {}", what, handler_calls, host_calls);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int size = check::size_of(MPI_COMM_WORLD);
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    PMPI_Comm_create_errhandler(on_error, &handler);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);

    std::vector<int> a(static_cast<std::size_t>(size) * 10), b(a.size());
    std::vector<int> tens(static_cast<std::size_t>(size), 10), places(tens), negative(tens);
    for (int r = 0; r < size; ++r)
        places[static_cast<std::size_t>(r)] = 10 * r;
    negative.back() = -1;
    MPI_Datatype raw = MPI_DATATYPE_NULL;
    PMPI_Type_vector(2, 1, 2, MPI_INT, &raw);  // not committed
    MPI_Datatype flat = MPI_DATATYPE_NULL;
    PMPI_Type_contiguous(2, MPI_INT, &flat);  // not committed
    MPI_Request r = MPI_REQUEST_NULL;
    int* s = a.data();
    int* t = b.data();
    MPI_Comm w = MPI_COMM_WORLD;

#define SAME(what, call, arguments) \
    same(                           \
        what, [&] { return MPI_##call arguments; }, [&] { return PMPI_##call arguments; })
    SAME("null communicator", Ialltoall, (s, 10, MPI_INT, t, 10, MPI_INT, MPI_COMM_NULL, &r));
    SAME("negative count", Ialltoall, (s, -1, MPI_INT, t, 10, MPI_INT, w, &r));
    SAME("negative receive count", Ialltoall, (s, 10, MPI_INT, t, -1, MPI_INT, w, &r));
    SAME("null type", Ialltoall, (s, 10, MPI_DATATYPE_NULL, t, 10, MPI_INT, w, &r));
    SAME("null receive type", Ialltoall, (s, 10, MPI_INT, t, 10, MPI_DATATYPE_NULL, w, &r));
    SAME("type that was not committed", Ialltoall, (s, 2, raw, t, 4, MPI_INT, w, &r));
    SAME("receive in place", Ialltoall, (s, 10, MPI_INT, MPI_IN_PLACE, 10, MPI_INT, w, &r));
    SAME("negative count", Iallgather, (s, 10, MPI_INT, t, -3, MPI_INT, w, &r));
    SAME("type that was not committed", Iallgather, (s, 1, flat, t, 1, flat, w, &r));
    SAME("negative count of the last", Ialltoallv,
         (s, tens.data(), places.data(), MPI_INT, t, negative.data(), places.data(), MPI_INT, w, &r));
#ifdef OPEN_MPI  // MPICH crashes
    SAME("null displacements", Ialltoallv,
         (s, tens.data(), nullptr, MPI_INT, t, tens.data(), places.data(), MPI_INT, w, &r));
#endif
    SAME("root out of range", Ibcast, (s, 10, MPI_INT, size, w, &r));
    SAME("negative root", Ibcast, (s, 10, MPI_INT, -5, w, &r));
    SAME("null type", Ibcast, (s, 10, MPI_DATATYPE_NULL, 0, w, &r));
    SAME("negative count", Ibcast, (s, -10, MPI_INT, 0, w, &r));
    SAME("type that was not committed", Ibcast, (s, 1, raw, 0, w, &r));
#ifdef OPEN_MPI  // MPICH accepts it here and fails later
    SAME("operation not for the type", Iallreduce, (s, t, 10, MPI_FLOAT, MPI_BAND, w, &r));
#endif
    SAME("null operation", Iallreduce, (s, t, 10, MPI_INT, MPI_OP_NULL, w, &r));
    SAME("negative count", Iallreduce, (s, t, -1, MPI_INT, MPI_SUM, w, &r));
#ifdef OPEN_MPI  // MPICH accepts it here and fails later
    SAME("operation not for the type", Allreduce, (s, t, 10, MPI_INT, MPI_MINLOC, w));
#endif
    SAME("root out of range", Ireduce, (s, t, 10, MPI_INT, MPI_SUM, size, w, &r));
#ifdef OPEN_MPI  // MPICH accepts it here and fails later
    SAME("operation not for the type", Iscan, (s, t, 10, MPI_DOUBLE, MPI_LXOR, w, &r));
#endif
    SAME("negative count of the last", Ireduce_scatter, (s, t, negative.data(), MPI_INT, MPI_SUM, w, &r));
    SAME("root out of range", Igather, (s, 10, MPI_INT, t, 10, MPI_INT, size, w, &r));
    SAME("negative count", Igather, (s, -1, MPI_INT, t, 10, MPI_INT, 0, w, &r));
    SAME("negative root", Iscatterv, (s, tens.data(), places.data(), MPI_INT, t, 10, MPI_INT, -5, w, &r));
    SAME("no topology", Ineighbor_allgather, (s, 1, MPI_INT, t, 1, MPI_INT, w, &r));
    SAME("null communicator", Ibarrier, (MPI_COMM_NULL, &r));
    SAME("negative count of requests", Waitall, (-1, &r, MPI_STATUSES_IGNORE));

    // The type was refused before. After its commit it must be accepted.
    PMPI_Type_commit(&raw);
    MPI_Ibcast(s, 2, raw, 0, w, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Type_free(&raw);
    MPI_Type_free(&flat);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    PMPI_Errhandler_free(&handler);
    return check::finish();
}
