/* Devices as MPI ranks: which ranks of a job are hosts, which are devices, and which of them work together.
 *
 * A launcher can start one MPI job in which devices are ranks of MPI_COMM_WORLD beside the hosts
 * (`offpath run --dpu-ranks`, `offpath lab run --dpu-ranks`, or an MPMD command line). This part of the API
 * splits such a job. It is a separate library, liboffpath-ranks, which needs only MPI: no daemon and no
 * offpath_init. It is the same on every architecture. <offpath/offpath.h> does not include this header.
 *
 * The split uses two variables that the launcher sets, and never host names:
 *   OFFPATH_RANK_KIND   "host" or "device", set for each program of the MPMD command line
 *   OFFPATH_NODE_INDEX  the number of the node that the rank belongs to, 0 or more; a device has its host's
 * Each is set for all ranks or for none. An empty variable counts as unset.
 * - Without OFFPATH_RANK_KIND, the first program of the command line (MPI_APPNUM 0) is the hosts' and the
 *   second the devices'. More than two programs need the variable.
 * - Without OFFPATH_NODE_INDEX, host ranks and device ranks, each in their order in `world`, are distributed
 *   in equal blocks, one block of each kind per node. There are as many nodes as ranks of the rarer kind.
 *
 * In a node with H host ranks and D device ranks, host h works with device h * D / H if H >= D; otherwise
 * device d works with host d * H / D. All blocks are contiguous and differ in size by at most one.
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
    int nodes;     /* of the job; each has at least one host rank and one device rank */
    int hosts;     /* host ranks of the job */
    int devices;   /* device ranks of the job */

    /* All ranks of this rank's kind, in order of their nodes, and of their ranks in `world` within a node. */
    MPI_Comm kind_comm;
    /* The ranks of this rank's node: host ranks are 0 to node_hosts - 1, device ranks follow. */
    MPI_Comm node_comm;
    int node_hosts;
    int node_devices;
    /* The ranks that work together: a device, then the hosts that it serves. If the node has more devices
     * than hosts: a host, then its devices. */
    MPI_Comm pair_comm;

    /* Ranks in `world`: */
    const int* node_host_ranks;   /* node_hosts of them, in the order of node_comm */
    const int* node_device_ranks; /* node_devices of them, in the order of node_comm */
    const int* peers; /* the ranks of the other kind in pair_comm: a host's devices, a device's hosts */
    int peer_count;   /* at least 1 */

    /* Architectures as the operating system names them: "x86_64", "aarch64", ... */
    char architecture[OFFPATH_ARCHITECTURE_MAX];      /* of this rank */
    char peer_architecture[OFFPATH_ARCHITECTURE_MAX]; /* of the first of its peers */

    void* internal; /* owns the arrays */
} offpath_device_ranks_t;

/* Splits `world`, usually MPI_COMM_WORLD, into hosts and devices, and pairs them. Collective over `world`,
 * after MPI_Init; all ranks get the same status. On success it fills in `*ranks`, and the caller must call
 * offpath_device_ranks_free before MPI_Finalize. Otherwise `*ranks` does not change, and
 * offpath_device_ranks_problem() says what was wrong. Errors:
 * - UNAVAILABLE: the job has no device rank or no host rank, for instance a plain MPI job. Nothing is
 *   printed.
 * - INVALID: the variables cannot be parsed, contradict each other, or leave ranks unpaired; rank 0 prints
 *   why. Also a wrong `struct_size`, a null argument, or an inter-communicator.
 * - MEMORY.
 * - SYSTEM: an MPI call failed, and the error handler of `world` returns. */
OFFPATH_API offpath_status_t offpath_device_ranks_split(MPI_Comm world, offpath_device_ranks_t* ranks);

/* Frees the communicators and arrays of a successful split and zeroes `*ranks`. Collective over the ranks of
 * `world`. Does nothing if there is nothing to free; null is allowed. */
OFFPATH_API void offpath_device_ranks_free(offpath_device_ranks_t* ranks);

/* Returns why the last offpath_device_ranks_split of this thread failed: one line of English, the same on all
 * ranks; empty if it did not fail. Never null. Valid until the thread's next split. */
OFFPATH_API const char* offpath_device_ranks_problem(void);

#ifdef __cplusplus
}
#endif

#endif
