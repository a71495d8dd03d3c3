/* Non-blocking collectives over a team, which the proxies execute.
 *
 * All ranks of a team must start its collectives and groups in the same order, with arguments that agree.
 * The semantics are those of the MPI call of the same name (MPI 3.1, chapter 5.12), with bytes for types;
 * only reductions have types. Calls read arrays before they return. Arrays have one entry per rank, except
 * those of the neighbourhood call. "size" in the comments is the number of ranks of the team.
 *
 * Errors of all collectives: INVALID (null, a destroyed team, a root or neighbour that is not in the team,
 * more than 2^47 bytes), UNSUPPORTED (the schedule is too large, or the reduction is not supported),
 * PEER_LOST (the device of this process is lost). A request ends with TRUNCATED if ranks disagree about
 * sizes, or with ACCESS, PEER_LOST or PROTOCOL. After an error, receive buffers are undefined.
 *
 * Threads: as the context (types.h). The caller ensures the order on each team. */
#ifndef OFFPATH_COLLECTIVES_H
#define OFFPATH_COLLECTIVES_H

#include <offpath/request.h>
#include <offpath/team.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As `send`: the data to send are in the receive buffer. As `recv` of a scatter's root (cast to void*): the
 * root's own block stays where it is. */
#define OFFPATH_IN_PLACE ((const void*)-1)

/* Types of elements. The last eight are pairs of a value and an index, for MINLOC and MAXLOC; they have the
 * layout of a C structure, padding included. Long doubles are those of the host. */
typedef enum offpath_type OFFPATH_ENUM_TYPE {
    OFFPATH_INT8 = 1,
    OFFPATH_UINT8,
    OFFPATH_INT16,
    OFFPATH_UINT16,
    OFFPATH_INT32,
    OFFPATH_UINT32,
    OFFPATH_INT64,
    OFFPATH_UINT64,
    OFFPATH_FLOAT32,
    OFFPATH_FLOAT64,
    OFFPATH_COMPLEX64,  /* two float32 */
    OFFPATH_COMPLEX128, /* two float64 */
    OFFPATH_BOOL8,      /* C's _Bool */
    OFFPATH_LONG_DOUBLE,
    OFFPATH_COMPLEX_LONG_DOUBLE,
    OFFPATH_LOGICAL32, /* Fortran's default LOGICAL */
    OFFPATH_INT32_INT32,
    OFFPATH_INT16_INT32,
    OFFPATH_INT64_INT32,
    OFFPATH_FLOAT32_INT32,
    OFFPATH_FLOAT64_INT32,
    OFFPATH_LONG_DOUBLE_INT32,
    OFFPATH_FLOAT32_FLOAT32,
    OFFPATH_FLOAT64_FLOAT64
} offpath_type_t;

typedef enum offpath_reduction OFFPATH_ENUM_TYPE {
    OFFPATH_SUM = 1,
    OFFPATH_PRODUCT,
    OFFPATH_MINIMUM,
    OFFPATH_MAXIMUM,
    OFFPATH_BAND,
    OFFPATH_BOR,
    OFFPATH_BXOR,
    OFFPATH_LAND,
    OFFPATH_LOR,
    OFFPATH_LXOR,
    OFFPATH_MINLOC,
    OFFPATH_MAXLOC,
    OFFPATH_REPLACE = 254, /* of windows only: the result is the operand */
    OFFPATH_NO_OP = 255    /* of windows only: the target does not change */
} offpath_reduction_t;

/* Returns the bytes of an element; 0 if there is no such type. Any thread. */
OFFPATH_API size_t offpath_type_bytes(offpath_type_t type);

/* Returns OFFPATH_OK if MPI defines this reduction for this type (MPI 3.1, chapter 5.9.2) and all devices of
 * the job can compute it, else OFFPATH_ERR_UNSUPPORTED. Long doubles are unsupported if a device is attached
 * remotely, because its architecture may have other long doubles. All ranks of a job get the same answer.
 * Any thread. */
OFFPATH_API offpath_status_t offpath_reduction_supported(offpath_context_h context, offpath_type_t type,
                                                         offpath_reduction_t reduction);

/* `send` has size blocks of `bytes` bytes, by destination; `recv` has size blocks, by source. In place: the
 * call copies the data aside. */
OFFPATH_API offpath_status_t offpath_ialltoall(offpath_team_h team, const void* send, void* recv,
                                               size_t bytes, offpath_request_h* request);

/* The block for rank i has send_bytes[i] bytes at send + send_offsets[i]; the block from rank i,
 * recv_bytes[i] bytes at recv + recv_offsets[i]. With OFFPATH_IN_PLACE the send arrays are ignored, and the
 * call copies the data aside. */
OFFPATH_API offpath_status_t offpath_ialltoallv(offpath_team_h team, const void* send,
                                                const size_t* send_bytes, const size_t* send_offsets,
                                                void* recv, const size_t* recv_bytes,
                                                const size_t* recv_offsets, offpath_request_h* request);

/* `send` has `bytes` bytes; in place, they are this rank's block of `recv`. `recv` has size blocks of
 * `bytes` bytes, by rank. */
OFFPATH_API offpath_status_t offpath_iallgather(offpath_team_h team, const void* send, void* recv,
                                                size_t bytes, offpath_request_h* request);

/* Rank i contributes recv_bytes[i] bytes, which arrive at recv + recv_offsets[i] on every rank. `recv_bytes`
 * is the same on all ranks; offsets may differ. */
OFFPATH_API offpath_status_t offpath_iallgatherv(offpath_team_h team, const void* send, void* recv,
                                                 const size_t* recv_bytes, const size_t* recv_offsets,
                                                 offpath_request_h* request);

/* Sends `bytes` bytes at `buffer` from rank `root` to all ranks. */
OFFPATH_API offpath_status_t offpath_ibcast(offpath_team_h team, void* buffer, size_t bytes, uint32_t root,
                                            offpath_request_h* request);

/* Gather and scatter `bytes` bytes per rank. The root's `recv` (gather) or `send` (scatter) has size blocks,
 * by rank; other ranks' is ignored. Only the root may pass OFFPATH_IN_PLACE: as `send` of a gather, as
 * `recv` of a scatter. */
OFFPATH_API offpath_status_t offpath_igather(offpath_team_h team, const void* send, void* recv, size_t bytes,
                                             uint32_t root, offpath_request_h* request);
OFFPATH_API offpath_status_t offpath_iscatter(offpath_team_h team, const void* send, void* recv, size_t bytes,
                                              uint32_t root, offpath_request_h* request);

/* The same with blocks of different sizes: at the root, rank i's block has recv_bytes[i] bytes at recv +
 * recv_offsets[i] (scatter: send_bytes[i] bytes at send + send_offsets[i]). Other ranks' arrays are ignored.
 */
OFFPATH_API offpath_status_t offpath_igatherv(offpath_team_h team, const void* send, size_t send_bytes,
                                              void* recv, const size_t* recv_bytes,
                                              const size_t* recv_offsets, uint32_t root,
                                              offpath_request_h* request);
OFFPATH_API offpath_status_t offpath_iscatterv(offpath_team_h team, const void* send,
                                               const size_t* send_bytes, const size_t* send_offsets,
                                               void* recv, size_t recv_bytes, uint32_t root,
                                               offpath_request_h* request);

/* Sends a block to each of `outdegree` destinations and receives one from each of `indegree` sources. A rank
 * may appear several times, and may be this one. The k-th block that this rank sends to a peer is the k-th
 * that the peer receives from it. The send blocks may overlap, so the call can implement all neighbourhood
 * collectives. */
OFFPATH_API offpath_status_t offpath_ineighbor_alltoallv(offpath_team_h team, const void* send,
                                                         uint32_t outdegree, const uint32_t* destinations,
                                                         const size_t* send_bytes, const size_t* send_offsets,
                                                         void* recv, uint32_t indegree,
                                                         const uint32_t* sources, const size_t* recv_bytes,
                                                         const size_t* recv_offsets,
                                                         offpath_request_h* request);

/* Reductions combine `count` elements of a type, element by element. The order of the operands depends only
 * on the team and the sizes, so equal runs give equal bits; allreduce gives the same bits on every rank.
 * With OFFPATH_IN_PLACE as `send` (reduce: at the root only) the operands are in `recv`. */
OFFPATH_API offpath_status_t offpath_iallreduce(offpath_team_h team, const void* send, void* recv,
                                                size_t count, offpath_type_t type,
                                                offpath_reduction_t reduction, offpath_request_h* request);
/* The result arrives at the root's `recv`; other ranks' is ignored. */
OFFPATH_API offpath_status_t offpath_ireduce(offpath_team_h team, const void* send, void* recv, size_t count,
                                             offpath_type_t type, offpath_reduction_t reduction,
                                             uint32_t root, offpath_request_h* request);
/* `send` has counts[0] + counts[1] + ... elements (reduce_scatter_block: size * count). Rank i gets the
 * result of its counts[i] elements, which follow those of the ranks before it. In place: `recv` has all
 * operands before the call, and its first counts[rank] elements get the result. */
OFFPATH_API offpath_status_t offpath_ireduce_scatter(offpath_team_h team, const void* send, void* recv,
                                                     const size_t* counts, offpath_type_t type,
                                                     offpath_reduction_t reduction,
                                                     offpath_request_h* request);
OFFPATH_API offpath_status_t offpath_ireduce_scatter_block(offpath_team_h team, const void* send, void* recv,
                                                           size_t count, offpath_type_t type,
                                                           offpath_reduction_t reduction,
                                                           offpath_request_h* request);
/* Reduce over the ranks up to this one (iscan), or up to the one before (iexscan; rank 0's `recv` does not
 * change). */
OFFPATH_API offpath_status_t offpath_iscan(offpath_team_h team, const void* send, void* recv, size_t count,
                                           offpath_type_t type, offpath_reduction_t reduction,
                                           offpath_request_h* request);
OFFPATH_API offpath_status_t offpath_iexscan(offpath_team_h team, const void* send, void* recv, size_t count,
                                             offpath_type_t type, offpath_reduction_t reduction,
                                             offpath_request_h* request);

/* The request is done when all ranks of the team have started the barrier. It waits for no other operation.
 */
OFFPATH_API offpath_status_t offpath_ibarrier(offpath_team_h team, offpath_request_h* request);

#ifdef __cplusplus
}
#endif

#endif
