/* Requests: started operations, which continue without the host. A request stays valid until
 * offpath_request_free, also when its operation is done. Threads: as the context (types.h). Several threads
 * may test the same request or wait for it. Every call returns INVALID for a null argument. */
#ifndef OFFPATH_REQUEST_H
#define OFFPATH_REQUEST_H

#include <offpath/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The message that a finished receive has received. */
typedef struct offpath_message {
    uint32_t source; /* rank in the team */
    uint32_t tag;
    size_t bytes; /* after TRUNCATED: the length that was sent */
} offpath_message_t;

/* Returns OFFPATH_OK if the operation is done, OFFPATH_IN_PROGRESS if not, or the error with which it ended.
 * Does not wait. An unsuccessful test costs a load or two, and a system call at most every 100 ms, which
 * detects a lost device. The operation needs no tests to progress. */
OFFPATH_API offpath_status_t offpath_request_test(offpath_request_h request);

/* Waits until the operation is done: spins for OFFPATH_CLIENT_SPIN_US (20 microseconds), then sleeps until
 * the proxy wakes it. Returns OFFPATH_OK or the error with which the operation ended; PEER_LOST within 10 s
 * if the device is lost. */
OFFPATH_API offpath_status_t offpath_request_wait(offpath_request_h request);

/* As offpath_request_wait, but does not spin and sleeps for at most `nanoseconds`; then it returns
 * OFFPATH_IN_PROGRESS. 0: does not sleep. In both, the caller may first copy up to 128 KiB of the block that
 * stays with its rank, or move 2 MiB of its buffers into a huge page (about 1 ms, up to 5 ms where the system
 * must first find the memory). For callers that must progress something else meanwhile. */
OFFPATH_API offpath_status_t offpath_request_wait_for(offpath_request_h request, uint64_t nanoseconds);

/* Gives source, tag and size of the message that offpath_recv_offload or offpath_message_recv received.
 * INVALID: not a receive, or no test or wait has returned OFFPATH_OK or TRUNCATED for it yet. */
OFFPATH_API offpath_status_t offpath_request_message(offpath_request_h request, offpath_message_t* message);

/* Frees the handle. An operation that is not done continues, and its buffers must stay valid until it is
 * done. No other call may use the request at the same time or later. */
OFFPATH_API offpath_status_t offpath_request_free(offpath_request_h request);

#ifdef __cplusplus
}
#endif

#endif
