/* Basic and group primitives, after the offload framework of K. Suresh et al. (IPDPS 2023).
 *
 * Basic: a message is matched at the proxies, a request to send against a request to receive, while both
 * hosts compute. Group: a pattern of sends, receives and barriers is recorded once and then started and
 * waited for many times; the whole pattern is one schedule on the proxy, started by one doorbell, and needs
 * no matching at run time. */
#ifndef OFFPATH_PRIMITIVES_H
#define OFFPATH_PRIMITIVES_H

#include <offpath/request.h>
#include <offpath/team.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OFFPATH_ANY_SOURCE UINT32_MAX
#define OFFPATH_ANY_TAG UINT32_MAX

/* Starts to send `bytes` bytes at `buffer` to rank `dest` of the team with `tag` (0 .. UINT32_MAX - 1).
 * Messages between two ranks of a team are matched in the order in which they were sent. The buffer must not
 * change until the request is done. */
OFFPATH_API offpath_status_t offpath_send_offload(offpath_team_h team, const void* buffer, size_t bytes,
                                                  uint32_t dest, uint32_t tag, offpath_request_h* request);

/* Starts to receive a message of at most `bytes` bytes from rank `source` (or OFFPATH_ANY_SOURCE) with `tag`
 * (or OFFPATH_ANY_TAG). A longer message ends the request with OFFPATH_ERR_TRUNCATED, and the buffer holds
 * its first `bytes` bytes or nothing. */
OFFPATH_API offpath_status_t offpath_recv_offload(offpath_team_h team, void* buffer, size_t bytes,
                                                  uint32_t source, uint32_t tag, offpath_request_h* request);

/* Starts to record a group on a team. What follows is kept, not executed, until offpath_group_end. */
OFFPATH_API offpath_status_t offpath_group_create(offpath_team_h team, offpath_group_h* group);

/* Records a send or a receive. Each must have its counterpart, with the same size, in the group that the peer
 * starts at the same place in the team's order of starts; several with the same peer and tag match in the
 * order of recording. */
OFFPATH_API offpath_status_t offpath_group_send(offpath_group_h group, const void* buffer, size_t bytes,
                                                uint32_t dest, uint32_t tag);
OFFPATH_API offpath_status_t offpath_group_recv(offpath_group_h group, void* buffer, size_t bytes,
                                                uint32_t source, uint32_t tag);

/* Records a local barrier: what is recorded later starts when all that was recorded before is done on this
 * rank. */
OFFPATH_API offpath_status_t offpath_group_barrier(offpath_group_h group);

/* Ends the recording: the schedule is checked and sent to the proxy. */
OFFPATH_API offpath_status_t offpath_group_end(offpath_group_h group);

/* Starts the whole group. The buffers recorded are used again; the previous start must be done. Groups and
 * collectives of one team must be started in the same order on all of its ranks. */
OFFPATH_API offpath_status_t offpath_group_start(offpath_group_h group);

/* As offpath_request_test and offpath_request_wait, for the latest start. OFFPATH_OK when it was never
 * started. */
OFFPATH_API offpath_status_t offpath_group_test(offpath_group_h group);
OFFPATH_API offpath_status_t offpath_group_wait(offpath_group_h group);

/* Ends the group; INVALID while it is running. */
OFFPATH_API offpath_status_t offpath_group_destroy(offpath_group_h group);

#ifdef __cplusplus
}
#endif

#endif
