/* Requests: operations that were started and go on without the host. */
#ifndef OFFPATH_REQUEST_H
#define OFFPATH_REQUEST_H

#include <offpath/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a finished receive can tell of its message. */
typedef struct offpath_message {
    uint32_t source; /* rank in the team */
    uint32_t tag;
    size_t bytes;
} offpath_message_t;

/* OFFPATH_OK when done, OFFPATH_IN_PROGRESS when not, else the error with which it ended. A load or two
 * when nothing has happened; a system call at most every 100 ms. The request stays valid until it is freed.
 * Thread-safe with OFFPATH_THREADS_MULTIPLE. */
OFFPATH_API offpath_status_t offpath_request_test(offpath_request_h request);

/* Waits: spins for a short while, then sleeps until the proxy wakes it. Returns OFFPATH_OK or the error;
 * PEER_LOST within 10 s when the proxy died. */
OFFPATH_API offpath_status_t offpath_request_wait(offpath_request_h request);

/* Sleeps until the request is done, but no longer than `nanoseconds`; then OFFPATH_IN_PROGRESS. Does not
 * spin. For callers that have something else to move meanwhile. */
OFFPATH_API offpath_status_t offpath_request_wait_for(offpath_request_h request, uint64_t nanoseconds);

/* Source, tag and size of the message that a finished recv_offload received. INVALID for anything else. */
OFFPATH_API offpath_status_t offpath_request_message(offpath_request_h request, offpath_message_t* message);

/* Gives the handle back. An operation that is not done goes on, and its buffers must stay valid until it is.
 */
OFFPATH_API offpath_status_t offpath_request_free(offpath_request_h request);

#ifdef __cplusplus
}
#endif

#endif
