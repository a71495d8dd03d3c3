! One source for the three interfaces of Fortran: INTERFACE_MPIF_H, INTERFACE_USE_MPI or INTERFACE_F08 is defined.
#ifdef INTERFACE_F08
#define COMM_T type(MPI_Comm)
#define REQUEST_T type(MPI_Request)
#define TYPE_T type(MPI_Datatype)
#define WIN_T type(MPI_Win)
#define GROUP_T type(MPI_Group)
#define MESSAGE_T type(MPI_Message)
#define ERRHANDLER_T type(MPI_Errhandler)
#define STATUS_T(name) type(MPI_Status)::name
#define STATUSES_T(name, n) type(MPI_Status)::name(n)
#define SOURCE_OF(s) s % MPI_SOURCE
#define TAG_OF(s) s % MPI_TAG
#define SOURCE_OF_NTH(s, i) s(i) % MPI_SOURCE
#define IERR
#else
#define COMM_T integer
#define REQUEST_T integer
#define TYPE_T integer
#define WIN_T integer
#define GROUP_T integer
#define MESSAGE_T integer
#define ERRHANDLER_T integer
#define STATUS_T(name) integer ::name(MPI_STATUS_SIZE)
#define STATUSES_T(name, n) integer ::name(MPI_STATUS_SIZE, n)
#define SOURCE_OF(s) s(MPI_SOURCE)
#define TAG_OF(s) s(MPI_TAG)
#define SOURCE_OF_NTH(s, i) s(MPI_SOURCE, i)
#define IERR , ierr
#endif

#ifdef INTERFACE_MPIF_H
#define USE_MPI
#define INCLUDE_MPI include 'mpif.h'
#elif defined(INTERFACE_USE_MPI)
#define USE_MPI use mpi
#define INCLUDE_MPI
#else
#define USE_MPI use mpi_f08
#define INCLUDE_MPI
#endif
