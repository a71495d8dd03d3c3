/* Basic and group primitives. Source: the offload framework of K. Suresh et al. (IPDPS 2023).
 *
 * Basic: the proxies match sends with receives while both hosts compute. Group: a program records a pattern
 * of sends, receives, kernels (compute.h) and barriers once, then starts it and waits for it many times. The
 * whole pattern is one schedule on the proxy; one record in a ring starts it, and nothing is matched at run
 * time. A kernel can depend on a message and a message on a kernel, without the host.
 *
 * Errors of all calls: INVALID (null, a rank that is not in the team, more than 2^47 bytes, a destroyed
 * team), PEER_LOST (the device of this process is lost). Threads: as the context (types.h); a group belongs
 * to one thread at a time. */
#ifndef OFFPATH_PRIMITIVES_H
#define OFFPATH_PRIMITIVES_H

#include <offpath/request.h>
#include <offpath/team.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OFFPATH_ANY_SOURCE UINT32_MAX
#define OFFPATH_ANY_TAG UINT32_MAX

/* Starts to send `bytes` bytes at `buffer` to rank `dest` of the team, which may be this rank, with `tag` (0
 * .. UINT32_MAX - 1). Messages between two ranks of a team are matched in the order in which they were sent.
 * A message of up to 4 KiB may be done before there is a receive for it. */
OFFPATH_API offpath_status_t offpath_send_offload(offpath_team_h team, const void* buffer, size_t bytes,
                                                  uint32_t dest, uint32_t tag, offpath_request_h* request);

/* Starts to receive a message of at most `bytes` bytes from rank `source` (or OFFPATH_ANY_SOURCE) with `tag`
 * (or OFFPATH_ANY_TAG). A longer message ends the request with TRUNCATED; then the buffer holds its first
 * `bytes` bytes or nothing, and the send ends without an error. The request can also end with ACCESS or
 * PEER_LOST. */
OFFPATH_API offpath_status_t offpath_recv_offload(offpath_team_h team, void* buffer, size_t bytes,
                                                  uint32_t source, uint32_t tag, offpath_request_h* request);

/* As offpath_recv_offload, from any rank r with (r & mask) == (source & mask): with the mask ~1 from rank
 * `source` or the one beside it, with the mask 1 from any rank that is even or odd as `source` is. */
OFFPATH_API offpath_status_t offpath_recv_masked(offpath_team_h team, void* buffer, size_t bytes,
                                                 uint32_t source, uint32_t mask, uint32_t tag,
                                                 offpath_request_h* request);

/* Starts to look for the message that offpath_recv_masked with these arguments would take, and leaves it
 * where it is. The request ends with OFFPATH_OK when there is one, and offpath_request_message describes it.
 * If there is none it waits for one if `wait` is not 0, and ends with CANCELED otherwise. */
OFFPATH_API offpath_status_t offpath_probe(offpath_team_h team, uint32_t source, uint32_t mask, uint32_t tag,
                                           int wait, offpath_request_h* request);

/* Starts to record a group on a team. Until offpath_group_end, steps are recorded and not executed. */
OFFPATH_API offpath_status_t offpath_group_create(offpath_team_h team, offpath_group_h* group);

/* Record a send or a receive. Each needs a counterpart of the same size in the group that the peer starts at
 * the same place in the team's order of starts. Several with the same peer and tag match in the order of
 * recording. There are no wildcards. Different sizes end the start with TRUNCATED on both ranks. A step
 * without counterpart ends it with PROTOCOL, or is never done. */
OFFPATH_API offpath_status_t offpath_group_send(offpath_group_h group, const void* buffer, size_t bytes,
                                                uint32_t dest, uint32_t tag);
OFFPATH_API offpath_status_t offpath_group_recv(offpath_group_h group, void* buffer, size_t bytes,
                                                uint32_t source, uint32_t tag);

/* Records a local barrier: the steps recorded after it start when all steps recorded before it are done on
 * this rank. It is not a barrier between ranks. */
OFFPATH_API offpath_status_t offpath_group_barrier(offpath_group_h group);

/* Records that step `step` starts when the step `earlier` is done. Sends, receives and kernels are numbered
 * from 0 in the order of recording; barriers have no number. INVALID unless earlier < step and `step` is
 * recorded. Without a dependency or a barrier, steps run in any order and side by side. */
OFFPATH_API offpath_status_t offpath_group_depend(offpath_group_h group, uint32_t step, uint32_t earlier);

/* Ends the recording: checks the schedule and sends it to the proxy. Local. Errors also: UNSUPPORTED (the
 * schedule is larger than 64 MiB encoded). After an error the group can only be destroyed. */
OFFPATH_API offpath_status_t offpath_group_end(offpath_group_h group);

/* Starts the whole group with the recorded buffers. The previous start must be done, else INVALID. All ranks
 * of a team must start the team's groups and collectives in the same order. */
OFFPATH_API offpath_status_t offpath_group_start(offpath_group_h group);

/* As offpath_request_test and offpath_request_wait, for the latest start. OFFPATH_OK if the group was never
 * started. */
OFFPATH_API offpath_status_t offpath_group_test(offpath_group_h group);
OFFPATH_API offpath_status_t offpath_group_wait(offpath_group_h group);

/* Frees the group, also while it is being recorded. INVALID if its latest start is not done. */
OFFPATH_API offpath_status_t offpath_group_destroy(offpath_group_h group);

#ifdef __cplusplus
}
#endif

#endif
