/* Types that every part of the offpath C API shares: status codes, handles, visibility.
 *
 * Conventions of the whole API
 * - Every call returns an offpath_status_t; results come back through the last arguments, which are set on
 * success only.
 * - Handles (`_h`) are opaque. A handle is created by one call and ended by its pair: init/finalize,
 * create/destroy, alloc/free, register/deregister. A null handle is an OFFPATH_ERR_INVALID, never a crash.
 * - Structures of parameters start with `struct_size = sizeof(the structure)`, so that later releases can
 * grow them.
 * - Sizes, displacements and offsets are in bytes. Ranks are 0-based indices into a team.
 * - Threads: calls on different contexts are independent. Calls on one context may come from any thread when
 * it was made with OFFPATH_THREADS_MULTIPLE; with OFFPATH_THREADS_SINGLE the caller keeps them apart.
 * - Nothing here may be called from a signal handler. After fork() only the parent may go on using a context.
 */
#ifndef OFFPATH_TYPES_H
#define OFFPATH_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OFFPATH_API __attribute__((visibility("default")))
#else
#define OFFPATH_API
#endif

/* Zero is success, positive values say "not yet", negative ones are errors. */
typedef enum offpath_status {
    OFFPATH_OK = 0,
    OFFPATH_IN_PROGRESS = 1, /* started or pending: ask again with test or wait */
    OFFPATH_RETRY = 2,       /* no room at this moment: nothing was done, call again */

    OFFPATH_ERR_INVALID = -1,     /* an argument is out of its range */
    OFFPATH_ERR_UNAVAILABLE = -2, /* no daemon answers, or it refused the attach */
    OFFPATH_ERR_VERSION = -3,     /* client and daemon speak different versions */
    OFFPATH_ERR_UNSUPPORTED = -4, /* known, but not possible here */
    OFFPATH_ERR_MEMORY = -5,      /* out of memory, here or on the device */
    OFFPATH_ERR_ACCESS = -6,      /* a transfer leaves its region or touches memory that is not there */
    OFFPATH_ERR_TRUNCATED = -7,   /* a message is longer than the buffer that receives it */
    OFFPATH_ERR_PEER_LOST = -8,   /* a rank or the proxy that serves it is gone */
    OFFPATH_ERR_PROTOCOL = -9,    /* a malformed message; the session that sent it is ended */
    OFFPATH_ERR_CANCELED = -10,   /* ended by finalize or destroy before it was done */
    OFFPATH_ERR_SYSTEM = -11      /* the operating system refused; the log has errno */
} offpath_status_t;

/* A short English text for a status. Never NULL. Thread-safe. */
OFFPATH_API const char* offpath_status_string(offpath_status_t status);

typedef struct offpath_context* offpath_context_h; /* one per process: its attachment to its device */
typedef struct offpath_team* offpath_team_h;       /* an ordered set of ranks */
typedef struct offpath_request* offpath_request_h; /* an operation that was started */
typedef struct offpath_group* offpath_group_h;     /* a recorded pattern of operations */
typedef struct offpath_region* offpath_region_h;   /* memory that was made known to the device */

#ifdef __cplusplus
}
#endif

#endif
