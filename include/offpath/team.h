/* Teams: ordered sets of ranks of the job. */
#ifndef OFFPATH_TEAM_H
#define OFFPATH_TEAM_H

#include <offpath/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The team of all ranks of the job, in job order. Owned by the context; not to be destroyed. */
OFFPATH_API offpath_status_t offpath_team_world(offpath_context_h context, offpath_team_h* team);

/* Makes a team of `size` distinct job ranks (`ranks`, copied), of which this process must be one. Local: no
 * message is sent to other ranks. `id` must be the same on all members and different from that of every other
 * live team that shares a member; ids from 2^63 upward are kept for offpath itself. Errors: INVALID (empty, a
 * rank twice or out of range, not a member, id in use or reserved), PEER_LOST. */
OFFPATH_API offpath_status_t offpath_team_create(offpath_context_h context, const uint32_t* ranks,
                                                 uint32_t size, uint64_t id, offpath_team_h* team);

/* Ends the team once what was started on it is done; returns at once. INVALID while it has windows. */
OFFPATH_API offpath_status_t offpath_team_destroy(offpath_team_h team);

OFFPATH_API offpath_status_t offpath_team_rank(offpath_team_h team, uint32_t* rank);
OFFPATH_API offpath_status_t offpath_team_size(offpath_team_h team, uint32_t* size);

#ifdef __cplusplus
}
#endif

#endif
