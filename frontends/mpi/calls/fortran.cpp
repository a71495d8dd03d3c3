#include "fortran.h"

#include <cstddef>

#include "rma/window_handles.h"

// Defined in the host's Fortran library, which a C program does not load.
extern "C" void pmpi_win_get_attr_(const MPI_Fint* win, const MPI_Fint* keyval, void* value, MPI_Fint* flag,
                                   MPI_Fint* ierror) __attribute__((weak));

// The addresses of these variables stand for Fortran's constants. A program that uses them may define them
// itself; the dynamic linker makes all users share one definition. The weak ones are in a library that not
// every job loads.
extern "C" {
#ifdef OPEN_MPI
extern int mpi_fortran_bottom_, mpi_fortran_in_place_, mpi_fortran_unweighted_, mpi_fortran_weights_empty_;
extern int *mpi_fortran_status_ignore_, *mpi_fortran_statuses_ignore_;
#else
// MPICH's mpi.h declares them only up to release 4.
extern MPI_F08_status MPIR_F08_MPI_STATUS_IGNORE_OBJ, MPIR_F08_MPI_STATUSES_IGNORE_OBJ[1];
extern int __mpi_f08_link_constants_MOD_mpi_unweighted __attribute__((weak));
extern int __mpi_f08_link_constants_MOD_mpi_weights_empty __attribute__((weak));
#endif
}

namespace offpath::mpi::fortran {
namespace {

constexpr std::size_t ints_a_status = sizeof(MPI_Status) / sizeof(MPI_Fint);

#ifdef OPEN_MPI
const void* const unweighted = &mpi_fortran_unweighted_;
const void* const weights_empty = &mpi_fortran_weights_empty_;
const void* const status_ignore = &mpi_fortran_status_ignore_;
const void* const statuses_ignore = &mpi_fortran_statuses_ignore_;
#else
const void* const unweighted = &__mpi_f08_link_constants_MOD_mpi_unweighted;
const void* const weights_empty = &__mpi_f08_link_constants_MOD_mpi_weights_empty;
const void* const status_ignore = &MPIR_F08_MPI_STATUS_IGNORE_OBJ;
const void* const statuses_ignore = &MPIR_F08_MPI_STATUSES_IGNORE_OBJ;
#endif

int topology_of(MPI_Comm comm) {
    int topology = MPI_UNDEFINED;
    return comm != MPI_COMM_NULL && PMPI_Topo_test(comm, &topology) == MPI_SUCCESS ? topology : MPI_UNDEFINED;
}

struct Neighbours {
    int sources = 0, destinations = 0;
};

Neighbours neighbours_of(MPI_Fint comm) {
    const MPI_Comm c = MPI_Comm_f2c(comm);
    Neighbours found;
    int weighted = 0;
    int rank = 0;
    switch (topology_of(c)) {
        case MPI_DIST_GRAPH:
            PMPI_Dist_graph_neighbors_count(c, &found.sources, &found.destinations, &weighted);
            break;
        case MPI_GRAPH:
            PMPI_Comm_rank(c, &rank);
            PMPI_Graph_neighbors_count(c, rank, &found.sources);
            found.destinations = found.sources;
            break;
        case MPI_CART:
            found.sources = found.destinations = 2 * dimensions(comm);
            break;
        default:
            break;
    }
    return found;
}

}  // namespace

#ifdef OPEN_MPI
bool is_in_place(const void* buffer) {
    return buffer == &mpi_fortran_in_place_;
}

void* choice(void* buffer) {
    if (is_in_place(buffer)) return MPI_IN_PLACE;
    return buffer == &mpi_fortran_bottom_ ? MPI_BOTTOM : buffer;
}
#endif

const int* weights_of(const MPI_Fint* weights) {
    if (weights != nullptr && weights == unweighted) return MPI_UNWEIGHTED;
    if (weights != nullptr && weights == weights_empty) return MPI_WEIGHTS_EMPTY;
    return weights;
}

int peers(MPI_Fint comm) {
    const MPI_Comm c = MPI_Comm_f2c(comm);
    int inter = 0;
    int count = 0;
    if (c == MPI_COMM_NULL || PMPI_Comm_test_inter(c, &inter) != MPI_SUCCESS) return 0;
    if (inter != 0) {
        PMPI_Comm_remote_size(c, &count);
    } else {
        PMPI_Comm_size(c, &count);
    }
    return count;
}

int sources(MPI_Fint comm) {
    return neighbours_of(comm).sources;
}

int destinations(MPI_Fint comm) {
    return neighbours_of(comm).destinations;
}

int dimensions(MPI_Fint comm) {
    const MPI_Comm c = MPI_Comm_f2c(comm);
    int count = 0;
    if (topology_of(c) == MPI_CART) PMPI_Cartdim_get(c, &count);
    return count;
}

StatusOut::StatusOut(MPI_Fint* fortran) : fortran_(fortran != status_ignore ? fortran : nullptr) {
    if (fortran_ != nullptr) MPI_Status_f2c(fortran_, &status_);
}

StatusOut::~StatusOut() {
    if (fortran_ != nullptr) MPI_Status_c2f(&status_, fortran_);
}

StatusesOut::StatusesOut(MPI_Fint* fortran, int count)
    : fortran_(fortran != statuses_ignore ? fortran : nullptr) {
    if (fortran_ == nullptr || count <= 0) return;
    statuses_.resize(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < statuses_.size(); ++i)
        MPI_Status_f2c(fortran_ + i * ints_a_status, &statuses_[i]);
}

StatusesOut::~StatusesOut() {
    for (std::size_t i = 0; i < statuses_.size(); ++i)
        MPI_Status_c2f(&statuses_[i], fortran_ + i * ints_a_status);
}

void win_get_attr(const MPI_Fint* win, const MPI_Fint* keyval, void* value, MPI_Fint* flag,
                  MPI_Fint* ierror) {
#ifdef OPEN_MPI
    constexpr MPI_Fint after_c = 0;
#else
    constexpr MPI_Fint after_c = 1;  // MPICH distinguishes the languages
#endif
    MPI_Fint error = MPI_SUCCESS;
    pmpi_win_get_attr_(win, keyval, value, flag, &error);
    report(error, ierror);
    if (error == MPI_SUCCESS && *flag != 0)
        own_attribute(MPI_Win_f2c(*win), *keyval - after_c, *static_cast<MPI_Aint*>(value));
}

}  // namespace offpath::mpi::fortran
