/* These calls say whether the other end of MPI communication is a host or a device. Hosts and target regions
 * use them alike. Include this header in programs whose target regions call MPI.
 *
 * The MPI rank of a device is that of its host, so a rank does not say which of the two is meant. A property
 * of the communicator or of the window does. The calls here set this property. The info key
 * REMOTE_DEST_HETERO of MPI_Comm_set_info and MPI_Win_set_info does the same with the values 0 and 1. A host
 * and its device each have a property of their own for the same communicator. */
#ifndef OFFPATH_MPI_H
#define OFFPATH_MPI_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef _OPENMP
#pragma omp begin declare target
#endif

#ifndef OFFPATH_ENUM_TYPE /* as in offpath/types.h */
#ifdef __cplusplus
#define OFFPATH_ENUM_TYPE : int
#else
#define OFFPATH_ENUM_TYPE
#endif
#endif

typedef enum offpath_end OFFPATH_ENUM_TYPE {
    OFFPATH_END_ALIKE = 0, /* hosts for a host, devices for a region; the default */
    OFFPATH_END_OTHER = 1  /* devices for a host, hosts for a region */
} offpath_end_t;

/* Makes an info object that says it, for MPI_Win_create and the like. The caller frees it. Returns MPI's
 * errors; MPI_ERR_ARG: there is no such end. */
static inline int offpath_info_of_end(offpath_end_t end, MPI_Info* info) {
    int error;
    if (end != OFFPATH_END_ALIKE && end != OFFPATH_END_OTHER) return MPI_ERR_ARG;
    error = MPI_Info_create(info);
    if (error != MPI_SUCCESS) return error;
    return MPI_Info_set(*info, "REMOTE_DEST_HETERO", end == OFFPATH_END_OTHER ? "1" : "0");
}

/* The other end of the communicator's point-to-point messages from now on. Local. Errors: MPI_ERR_ARG, and
 * those of MPI_Comm_set_info (docs/openmp.md). */
static inline int offpath_comm_set_end(MPI_Comm comm, offpath_end_t end) {
    MPI_Info info;
    int error = offpath_info_of_end(end, &info);
    if (error != MPI_SUCCESS) return error;
    error = MPI_Comm_set_info(comm, info);
    MPI_Info_free(&info);
    return error;
}

/* The other end of one-sided operations on the window from now on. Local. The window must have been made with
 * an info object that has the key. Errors: MPI_ERR_ARG, and those of MPI_Win_set_info. */
static inline int offpath_win_set_end(MPI_Win window, offpath_end_t end) {
    MPI_Info info;
    int error = offpath_info_of_end(end, &info);
    if (error != MPI_SUCCESS) return error;
    error = MPI_Win_set_info(window, info);
    MPI_Info_free(&info);
    return error;
}

#ifdef _OPENMP
#pragma omp end declare target
#endif
#ifdef __cplusplus
}
#endif

#endif
