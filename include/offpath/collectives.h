/* Non-blocking collectives over a team, executed by the proxies.
 *
 * All ranks of a team start its collectives and groups in the same order. Buffers must stay valid, and those
 * sent unchanged, until the request is done. Semantics are those of the MPI call of the same name (MPI 3.1,
 * chapter 5.12), with bytes for types. */
#ifndef OFFPATH_COLLECTIVES_H
#define OFFPATH_COLLECTIVES_H

#include <offpath/request.h>
#include <offpath/team.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As send buffer: the data to send lie in the receive buffer. */
#define OFFPATH_IN_PLACE ((const void*)-1)

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

/* Done when all ranks of the team have started it. */
OFFPATH_API offpath_status_t offpath_ibarrier(offpath_team_h team, offpath_request_h* request);

#ifdef __cplusplus
}
#endif

#endif
