/* Types that every part of the offpath C API shares: status codes, handles, visibility.
 *
 * Conventions of the whole API
 * - Every call returns an offpath_status_t, unless its comment says otherwise. Results come back through the
 *   last arguments, which are set on success only.
 * - Handles (`_h`) are opaque. One call creates a handle and its counterpart ends it: init/finalize,
 *   create/destroy, alloc/free, register/deregister. A null handle, or a null pointer for a result, gives
 *   OFFPATH_ERR_INVALID. A handle that has ended must not be used; the library does not detect this.
 * - The caller sets `struct_size = sizeof(the structure)` in structures of parameters and results, so that
 *   later releases can add members. Another size gives OFFPATH_ERR_INVALID.
 * - Sizes, displacements and offsets are in bytes, at most 2^47. Ranks are 0-based indices into a team.
 * - A buffer may be any memory of the process. It must stay valid until its operation is done, and a buffer
 *   that is sent must not change until then. A buffer of 0 bytes may be null.
 * - A call that starts an operation checks its arguments and returns at once. OFFPATH_OK means "started";
 *   later errors become the status of the request. If there is no room for the operation, the call waits.
 * - Comments shorten OFFPATH_ERR_INVALID to INVALID where they list errors, and likewise for other errors.
 *
 * Threads: calls on different contexts are independent. Calls on one context that was made with
 * OFFPATH_THREADS_MULTIPLE may come from any thread; with OFFPATH_THREADS_SINGLE, the caller must ensure that
 * no two calls overlap. "Threads: as the context" means this rule.
 *
 * No call may be made from a signal handler. After fork(), only the parent may use the context.
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

/* A C++ compiler may suppose that an enum without a type has no other values than those between its own. Each
 * call of this API checks what it is given, so any int must reach it. */
#ifdef __cplusplus
#define OFFPATH_ENUM_TYPE : int
#else
#define OFFPATH_ENUM_TYPE
#endif

/* Zero is success, positive values mean "not yet", negative values are errors. */
typedef enum offpath_status OFFPATH_ENUM_TYPE {
    OFFPATH_OK = 0,
    OFFPATH_IN_PROGRESS = 1, /* not done yet: test or wait again */
    OFFPATH_RETRY = 2,       /* reserved: no call returns it; a call that finds no room waits */

    OFFPATH_ERR_INVALID = -1,     /* an argument is out of range, or does not fit the state of its handle */
    OFFPATH_ERR_UNAVAILABLE = -2, /* no daemon answers, it refused the attach, or there is no bootstrap */
    OFFPATH_ERR_VERSION = -3,     /* client and daemon speak different versions */
    OFFPATH_ERR_UNSUPPORTED = -4, /* known, but not possible here */
    OFFPATH_ERR_MEMORY = -5,      /* out of memory, here or on the device */
    OFFPATH_ERR_ACCESS = -6,      /* a transfer leaves its region, or its memory does not exist */
    OFFPATH_ERR_TRUNCATED = -7,   /* a message is longer than its receive buffer */
    OFFPATH_ERR_PEER_LOST = -8,   /* a rank, or the proxy that serves it, is lost */
    OFFPATH_ERR_PROTOCOL = -9,    /* a malformed message, or one that the receiver does not expect */
    OFFPATH_ERR_CANCELED = -10,   /* ended before it was done: receive canceled, kernel crashed */
    OFFPATH_ERR_SYSTEM = -11      /* the operating system refused; the log says why */
} offpath_status_t;

/* Returns a short English text for a status, for any value; never NULL. The text is constant. Any thread. */
OFFPATH_API const char* offpath_status_string(offpath_status_t status);

typedef struct offpath_context* offpath_context_h; /* the attachment of a process to its device */
typedef struct offpath_team* offpath_team_h;       /* an ordered set of ranks */
typedef struct offpath_request* offpath_request_h; /* a started operation */
typedef struct offpath_group* offpath_group_h;     /* a recorded pattern of operations */
typedef struct offpath_region* offpath_region_h;   /* memory that the device knows */

#ifdef __cplusplus
}
#endif

#endif
