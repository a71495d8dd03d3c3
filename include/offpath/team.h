/* Teams: ordered sets of ranks of the job. The context owns them; offpath_finalize ends those that are left.
 * Threads: as the context (types.h), except where a call says otherwise. */
#ifndef OFFPATH_TEAM_H
#define OFFPATH_TEAM_H

#include <offpath/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Gives the team of all ranks of the job, in job order. It cannot be destroyed. INVALID: null. Any thread. */
OFFPATH_API offpath_status_t offpath_team_world(offpath_context_h context, offpath_team_h* team);

/* Makes a team of `size` distinct ranks of the job, one of which is this process. ranks[i] becomes rank i of
 * the team; the call copies the array. Every member makes the team for itself, with the same `ranks` and the
 * same `id`, at any time: the call is local and sends no message to other ranks.
 *
 * `id` must differ from that of every other live team that shares a member. Ids from 2^63 on are reserved
 * for offpath. An id may be reused when all members have destroyed its former team and none of that team's
 * basic messages is left unreceived.
 *
 * Errors: INVALID (empty, a rank twice or out of range, this process not a member, id in use or reserved),
 * PEER_LOST (the device is lost). */
OFFPATH_API offpath_status_t offpath_team_create(offpath_context_h context, const uint32_t* ranks,
                                                 uint32_t size, uint64_t id, offpath_team_h* team);

/* Frees the handle and returns at once. Started operations run to their end and their requests stay valid.
 * Groups of the team can be tested, waited for and destroyed, but not started again. No other call may use
 * the team at the same time. Errors: INVALID (null, the team of all ranks, a team that has windows). */
OFFPATH_API offpath_status_t offpath_team_destroy(offpath_team_h team);

/* Give this process's rank in the team, and the number of its ranks. INVALID: null. Any thread. */
OFFPATH_API offpath_status_t offpath_team_rank(offpath_team_h team, uint32_t* rank);
OFFPATH_API offpath_status_t offpath_team_size(offpath_team_h team, uint32_t* size);

#ifdef __cplusplus
}
#endif

#endif
