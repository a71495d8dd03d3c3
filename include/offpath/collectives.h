/* Non-blocking collectives over a team, executed by the proxies.
 *
 * All ranks of a team start its collectives and groups in the same order, with arguments that agree. Buffers
 * must stay valid, and those sent unchanged, until the request is done. Arrays are read before the call
 * returns. Semantics are those of the MPI call of the same name (MPI 3.1, chapter 5.12), with bytes for
 * types; only reductions need to know what the bytes are. */
#ifndef OFFPATH_COLLECTIVES_H
#define OFFPATH_COLLECTIVES_H

#include <offpath/request.h>
#include <offpath/team.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As send buffer: the data to send lie in the receive buffer. As receive buffer of the root of a scatter
 * (cast to void*): its own block stays where it is. */
#define OFFPATH_IN_PLACE ((const void*)-1)

/* Types of elements. The pairs have the layout of a C structure of a value and an index, padding included;
 * they are what MINLOC and MAXLOC work on. Long doubles are those of the host. */
typedef enum offpath_type {
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

typedef enum offpath_reduction {
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
    OFFPATH_REPLACE = 254, /* of windows only: the operand */
    OFFPATH_NO_OP = 255    /* of windows only: the target as it is */
} offpath_reduction_t;

/* Bytes of an element; 0: there is no such type. Any thread. */
OFFPATH_API size_t offpath_type_bytes(offpath_type_t type);

/* OFFPATH_OK when this reduction of this type is one that MPI defines (MPI 3.1, chapter 5.9.2) and that all
 * devices of the job can compute, OFFPATH_ERR_UNSUPPORTED when not: long doubles, where a device may be of
 * another architecture than its hosts. All ranks of a job get the same answer. Any thread. */
OFFPATH_API offpath_status_t offpath_reduction_supported(offpath_context_h context, offpath_type_t type,
                                                         offpath_reduction_t reduction);

/* `send`: size blocks of `bytes` bytes, by destination; `recv`: size blocks, by source. */
OFFPATH_API offpath_status_t offpath_ialltoall(offpath_team_h team, const void* send, void* recv,
                                               size_t bytes, offpath_request_h* request);

/* Blocks of `send_bytes[i]` bytes at `send + send_offsets[i]` for rank i; likewise for what is received.
 * Arrays have one entry a rank and are copied. With OFFPATH_IN_PLACE the send arrays are ignored. */
OFFPATH_API offpath_status_t offpath_ialltoallv(offpath_team_h team, const void* send,
                                                const size_t* send_bytes, const size_t* send_offsets,
                                                void* recv, const size_t* recv_bytes,
                                                const size_t* recv_offsets, offpath_request_h* request);

/* `send`: `bytes` bytes (or OFFPATH_IN_PLACE: block `rank` of recv); `recv`: size blocks of `bytes` bytes, by
 * rank. */
OFFPATH_API offpath_status_t offpath_iallgather(offpath_team_h team, const void* send, void* recv,
                                                size_t bytes, offpath_request_h* request);

/* Rank i contributes recv_bytes[i] bytes, which arrive at recv + recv_offsets[i] on every rank. */
OFFPATH_API offpath_status_t offpath_iallgatherv(offpath_team_h team, const void* send, void* recv,
                                                 const size_t* recv_bytes, const size_t* recv_offsets,
                                                 offpath_request_h* request);

/* `bytes` bytes at `buffer`, from rank `root` to all. */
OFFPATH_API offpath_status_t offpath_ibcast(offpath_team_h team, void* buffer, size_t bytes, uint32_t root,
                                            offpath_request_h* request);

/* Gather and scatter: `bytes` bytes a rank. The root's `recv` (gather) or `send` (scatter) holds size blocks,
 * by rank; other ranks' is ignored. In place at the root: `send` of a gather, `recv` of a scatter. */
OFFPATH_API offpath_status_t offpath_igather(offpath_team_h team, const void* send, void* recv, size_t bytes,
                                             uint32_t root, offpath_request_h* request);
OFFPATH_API offpath_status_t offpath_iscatter(offpath_team_h team, const void* send, void* recv, size_t bytes,
                                              uint32_t root, offpath_request_h* request);

/* The same with blocks of their own size: at the root, rank i's has recv_bytes[i] bytes at recv_offsets[i]
 * (send_bytes[i] at send_offsets[i]). The arrays have one entry a rank and are ignored elsewhere. */
OFFPATH_API offpath_status_t offpath_igatherv(offpath_team_h team, const void* send, size_t send_bytes,
                                              void* recv, const size_t* recv_bytes,
                                              const size_t* recv_offsets, uint32_t root,
                                              offpath_request_h* request);
OFFPATH_API offpath_status_t offpath_iscatterv(offpath_team_h team, const void* send,
                                               const size_t* send_bytes, const size_t* send_offsets,
                                               void* recv, size_t recv_bytes, uint32_t root,
                                               offpath_request_h* request);

/* Sends a block to each of `outdegree` destinations and receives one from each of `indegree` sources. A rank
 * may appear several times, and may be this one: the k-th block for a rank is the k-th that this rank has
 * from here. Serves all neighbourhood collectives: the send blocks may overlap. */
OFFPATH_API offpath_status_t offpath_ineighbor_alltoallv(offpath_team_h team, const void* send,
                                                         uint32_t outdegree, const uint32_t* destinations,
                                                         const size_t* send_bytes, const size_t* send_offsets,
                                                         void* recv, uint32_t indegree,
                                                         const uint32_t* sources, const size_t* recv_bytes,
                                                         const size_t* recv_offsets,
                                                         offpath_request_h* request);

/* Reductions: `count` elements of a type, element by element. The order of operands depends on the team and
 * the sizes alone, so equal runs give equal bits; allreduce gives the same bits on every rank. `send` may be
 * OFFPATH_IN_PLACE (reduce: at the root), then the operands lie in `recv`. A combination that is not
 * supported is OFFPATH_ERR_UNSUPPORTED. */
OFFPATH_API offpath_status_t offpath_iallreduce(offpath_team_h team, const void* send, void* recv,
                                                size_t count, offpath_type_t type,
                                                offpath_reduction_t reduction, offpath_request_h* request);
/* `recv` is ignored but at the root. */
OFFPATH_API offpath_status_t offpath_ireduce(offpath_team_h team, const void* send, void* recv, size_t count,
                                             offpath_type_t type, offpath_reduction_t reduction,
                                             uint32_t root, offpath_request_h* request);
/* `send` has counts[0] + ... elements; rank i gets the counts[i] that follow those of the ranks before. In
 * place: `recv` has them all at the start, and its first counts[rank] hold the result. */
OFFPATH_API offpath_status_t offpath_ireduce_scatter(offpath_team_h team, const void* send, void* recv,
                                                     const size_t* counts, offpath_type_t type,
                                                     offpath_reduction_t reduction,
                                                     offpath_request_h* request);
OFFPATH_API offpath_status_t offpath_ireduce_scatter_block(offpath_team_h team, const void* send, void* recv,
                                                           size_t count, offpath_type_t type,
                                                           offpath_reduction_t reduction,
                                                           offpath_request_h* request);
/* Over the ranks up to this one; exscan: up to the one before, and rank 0's `recv` stays as it is. */
OFFPATH_API offpath_status_t offpath_iscan(offpath_team_h team, const void* send, void* recv, size_t count,
                                           offpath_type_t type, offpath_reduction_t reduction,
                                           offpath_request_h* request);
OFFPATH_API offpath_status_t offpath_iexscan(offpath_team_h team, const void* send, void* recv, size_t count,
                                             offpath_type_t type, offpath_reduction_t reduction,
                                             offpath_request_h* request);

/* Done when all ranks of the team have started it. */
OFFPATH_API offpath_status_t offpath_ibarrier(offpath_team_h team, offpath_request_h* request);

#ifdef __cplusplus
}
#endif

#endif
