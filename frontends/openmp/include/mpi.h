/* Programs with target regions get this header in place of the MPI's own mpi.h, which it includes. It
 * declares everything for devices too: Open MPI's handles are addresses of variables, which a region could
 * not name otherwise. offpath-clang puts this folder before the program's own. */
#ifdef _OPENMP
/* A device has no C++ bindings, which MPI-3 removed. */
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#pragma omp begin declare target
#include_next <mpi.h>
#pragma omp end declare target
#else
#include_next <mpi.h>
#endif
