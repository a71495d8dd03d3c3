// One collective in all its forms, compared with the host's MPI: once through PMPI_ for the expected result,
// then non-blocking, blocking and persistent (started twice), each with a fresh copy of the receive buffer.
#pragma once

#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "check.h"
#include "kill_daemon.h"

namespace check {

using Bytes = std::vector<std::byte>;

struct Forms {
    using Started = std::function<int(void* recv, MPI_Request* request)>;
    Started host, nonblocking, persistent;
    std::function<int(void* recv)> host_blocking, blocking;
};

enum Which : unsigned { started = 1, waited = 2, repeated = 4, every_form = 7 };

template <typename Data, typename Same>
void compare_forms(const std::string& what, const Data& recv, const Forms& forms, unsigned which, Same same) {
    kill_if_due(rank_of(MPI_COMM_WORLD));
    Data expected = recv;
    MPI_Request request = MPI_REQUEST_NULL;
    forms.host(expected.data(), &request);
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
    if ((which & started) != 0) {
        Data got = recv;
        forms.nonblocking(got.data(), &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        that(request == MPI_REQUEST_NULL, "{}: request not null", what);
        that(same(got, expected), "{}", what);
    }
    if ((which & waited) != 0) {
        Data blocking_expected = recv;
        Data got = recv;
        forms.host_blocking(blocking_expected.data());
        forms.blocking(got.data());
        that(same(got, blocking_expected), "{}, blocking", what);
    }
    if ((which & repeated) != 0 && forms.persistent) {
        Data got = recv;
        forms.persistent(got.data(), &request);
        for (int i = 0; i < 2; ++i) {
            got = recv;  // the same memory
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            that(same(got, expected), "{}, persistent, start {}", what, i);
        }
        that(request != MPI_REQUEST_NULL, "{}: the persistent request is gone", what);
        MPI_Request_free(&request);
    }
}

template <typename Data>
void compare_forms(const std::string& what, const Data& recv, const Forms& forms,
                   unsigned which = every_form) {
    compare_forms(what, recv, forms, which, [](const Data& a, const Data& b) { return a == b; });
}

}  // namespace check

// FORMS(Alltoall, alltoall, arguments up to the communicator): `to` in the arguments stands for the receive
// buffer.
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
#define OFFPATH_TEST_INIT(Name) MPI_##Name##_init
#define OFFPATH_TEST_HAS_INIT 1
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define OFFPATH_TEST_INIT(Name) MPIX_##Name##_init
#define OFFPATH_TEST_HAS_INIT 1
#endif
// Persistent forms are left out where they may stay on the host: MPICH 4.0's own fail with "invalid
// communicator".
#if defined(OFFPATH_TEST_HAS_INIT) && defined(OPEN_MPI)
#define OFFPATH_TEST_PERSISTENT(Name, ...)                                   \
    [=](void* to, MPI_Request* request) {                                    \
        (void)to;                                                            \
        return OFFPATH_TEST_INIT(Name)(__VA_ARGS__, MPI_INFO_NULL, request); \
    }
#else
#define OFFPATH_TEST_PERSISTENT(Name, ...) nullptr
#endif
#define FORMS(Name, name, ...)                            \
    check::Forms {                                        \
        [=](void* to, MPI_Request* request) {             \
            (void)to;                                     \
            return PMPI_I##name(__VA_ARGS__, request);    \
        },                                                \
            [=](void* to, MPI_Request* request) {         \
                (void)to;                                 \
                return MPI_I##name(__VA_ARGS__, request); \
            },                                            \
            OFFPATH_TEST_PERSISTENT(Name, __VA_ARGS__),   \
            [=](void* to) {                               \
                (void)to;                                 \
                return PMPI_##Name(__VA_ARGS__);          \
            },                                            \
            [=](void* to) {                               \
                (void)to;                                 \
                return MPI_##Name(__VA_ARGS__);           \
            }                                             \
    }
