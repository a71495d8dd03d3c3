/* Devices as MPI ranks: who of a job is a host and who a device, and which of them belong together.
 *
 * A launcher can start one MPI job in which devices are ranks of MPI_COMM_WORLD beside the hosts (`offpath
 * run
 * --dpu-ranks`, `offpath lab run --dpu-ranks`, or an MPMD command line of one's own). This part of the API
 * splits such a job. It is a library of its own, liboffpath-ranks, that needs MPI alone: no daemon, no
 * offpath_init, the same on every architecture. It is not part of <offpath/offpath.h>.
 *
 * What it goes by is what the launcher says, never host names:
 *   OFFPATH_RANK_KIND   "host" or "device", set for each program of the MPMD command line
 *   OFFPATH_NODE_INDEX  the number of the node that the rank belongs to, 0 or more; a device has its host's
 * Either is set for all ranks or for none. An empty variable counts as unset.
 * - No rank has OFFPATH_RANK_KIND: the first program of the command line (MPI_APPNUM 0) is the hosts', the
 *   second one the devices'. More than two programs need the variable.
 * - No rank has OFFPATH_NODE_INDEX: host ranks and device ranks, each in their order in `world`, are dealt
 * out in equal blocks, one block of each to a node. There are as many nodes as there are ranks of the rarer
 * kind.
 *
 * Within a node with H host ranks and D device ranks, host h works with device h * D / H where there are at
 * least as many hosts as devices; otherwise device d works with host d * H / D. All blocks are contiguous and
 * as equal as can be.
 */
#ifndef OFFPATH_DEVICE_RANKS_H
#define OFFPATH_DEVICE_RANKS_H

#include <mpi.h>
#include <offpath/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OFFPATH_ARCHITECTURE_MAX 32

typedef struct offpath_device_ranks {
    size_t struct_size; /* set by the caller: sizeof(offpath_device_ranks_t) */

    int is_device; /* 1: this rank is a device; 0: it is a host */
    int node;      /* this rank's node, 0 to nodes - 1, in ascending order of the launcher's indices */
    int nodes;     /* of the job, each with at least one host rank and one device rank */
    int hosts;     /* host ranks of the job */
    int devices;   /* device ranks of the job */

    /* All ranks of this rank's kind, in order of their nodes, and of their ranks in `world` within a node. */
    MPI_Comm kind_comm;
    /* This rank's node: its host ranks, which are 0 to node_hosts - 1, then its device ranks. */
    MPI_Comm node_comm;
    int node_hosts;
    int node_devices;
    /* Those that work together: a device, then the hosts that it serves; or a host, then its devices where a
     * node has more devices than hosts. */
    MPI_Comm pair_comm;

    /* Ranks in `world`. */
    const int* node_host_ranks;   /* node_hosts of them, in the order of node_comm */
    const int* node_device_ranks; /* node_devices of them, in the order of node_comm */
    const int* peers; /* the ranks of the other kind in pair_comm: a host's devices, a device's hosts */
    int peer_count;   /* at least 1 */

    /* What the two sides run on, as the operating system calls it: "x86_64", "aarch64", ... */
    char architecture[OFFPATH_ARCHITECTURE_MAX];      /* of this rank */
    char peer_architecture[OFFPATH_ARCHITECTURE_MAX]; /* of the first of its peers */

    void* internal; /* owns the arrays */
} offpath_device_ranks_t;

/* Splits `world`, usually MPI_COMM_WORLD, into hosts and devices, and pairs them. Collective over `world`,
 * after MPI_Init; all ranks get the same status. On success `*ranks` is filled in, and
 * offpath_device_ranks_free must be called before MPI_Finalize; otherwise `*ranks` is left alone and
 * offpath_device_ranks_problem() says what was wrong. Errors: UNAVAILABLE  the job has no device rank, or no
 * host rank: a plain MPI job, for instance. Nothing is printed. INVALID      what the launcher said cannot be
 * understood, contradicts itself, or leaves ranks unpaired; rank 0 prints why. Also a wrong `struct_size`, a
 * null argument, or an inter-communicator. MEMORY, SYSTEM (an MPI call failed, where the error handler of
 * `world` returns). */
OFFPATH_API offpath_status_t offpath_device_ranks_split(MPI_Comm world, offpath_device_ranks_t* ranks);

/* Frees the communicators and arrays of a successful split and zeroes `*ranks`. Collective over what was
 * `world`. Does nothing where there is nothing to free; null is allowed. */
OFFPATH_API void offpath_device_ranks_free(offpath_device_ranks_t* ranks);

/* Why the last offpath_device_ranks_split of this thread failed: one line of English, the same on all ranks;
 * empty if it did not. Valid until the thread's next call of it. Never null. */
OFFPATH_API const char* offpath_device_ranks_problem(void);

#ifdef __cplusplus
}
#endif

#endif
