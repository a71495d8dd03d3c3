/* Windows: memory of every rank of a team that the other ranks read, write and update without its process.
 *
 * The target's proxy executes every operation on the target's memory, so puts, gets, updates and locks need
 * nothing of the target's process. Updates are accumulate, get_accumulate and compare_swap. They are atomic
 * to each other, element by element, and those of one rank to one target are applied in the order of the
 * calls. Other operations have no order: flush, or fence, between operations that must follow each other.
 *
 * When the `request` of an operation is done, the operation is done at the target too. With a null
 * `request`, the next flush of its target waits for it and returns the first error among such operations.
 * Buffers must not change until then. The call copies segments, and origins of at most OFFPATH_INLINE_BYTES.
 *
 * Offsets are bytes from the start of the target's memory; in a dynamic window they are addresses in the
 * target's process. An operation that leaves the target's memory ends with ACCESS and touches nothing.
 *
 * Errors of all calls: INVALID (null or an argument out of range), PEER_LOST (the device of this process is
 * lost). Requests and flushes end with ACCESS, PEER_LOST or UNSUPPORTED. Threads: as the context (types.h).
 */
#ifndef OFFPATH_WINDOWS_H
#define OFFPATH_WINDOWS_H

#include <offpath/collectives.h>
#include <offpath/request.h>
#include <offpath/team.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct offpath_window* offpath_window_h;

/* As the target of a flush or fence: all ranks of the team. */
#define OFFPATH_ALL_TARGETS UINT32_MAX

/* Origins up to this size may change once the call has returned. */
#define OFFPATH_INLINE_BYTES 4096

/* The largest number of segments of one call. */
#define OFFPATH_MAX_SEGMENTS 65536

/* A piece of a target's memory. */
typedef struct offpath_segment {
    uint64_t offset;
    uint64_t bytes; /* > 0; in updates a multiple of the element's size */
} offpath_segment_t;

/* Where an operation takes place: at `offset` of rank `target`. If `segment_count` > 0, it takes place in
 * these segments instead, one after the other; together they have the size of the operation. */
typedef struct offpath_place {
    uint32_t target;
    uint64_t offset;
    const offpath_segment_t* segments;
    uint32_t segment_count;
} offpath_place_t;

/* Makes a window in which this rank exposes `bytes` bytes at `base`. Both may differ from rank to rank, and
 * `bytes` may be 0. Collective over the team, in the order of its collectives. Returns when all ranks may
 * use the window. If the call fails on one rank, it fails on all ranks and no window is made. */
OFFPATH_API offpath_status_t offpath_window_create(offpath_team_h team, void* base, size_t bytes,
                                                   offpath_window_h* window);
/* The same with nothing exposed yet: each rank attaches memory when it wants. */
OFFPATH_API offpath_status_t offpath_window_create_dynamic(offpath_team_h team, offpath_window_h* window);

/* Ends the window. Collective: waits for this rank's operations on it, then for all ranks. Afterwards no
 * operation touches the memory. Returns the first unreported error of this rank's operations. */
OFFPATH_API offpath_status_t offpath_window_destroy(offpath_window_h window);

/* Exposes [base, base + bytes) of this process in a dynamic window. Attached ranges must not overlap. Local.
 */
OFFPATH_API offpath_status_t offpath_window_attach(offpath_window_h window, void* base, size_t bytes);
/* Ends the exposure of the range that was attached at `base`. Afterwards no operation touches it. Local. */
OFFPATH_API offpath_status_t offpath_window_detach(offpath_window_h window, void* base);

/* Copy `bytes` bytes from `origin` to the target (put), or from the target into `result` (get). */
OFFPATH_API offpath_status_t offpath_put(offpath_window_h window, const void* origin, size_t bytes,
                                         const offpath_place_t* place, offpath_request_h* request);
OFFPATH_API offpath_status_t offpath_get(offpath_window_h window, void* result, size_t bytes,
                                         const offpath_place_t* place, offpath_request_h* request);

/* target = target (reduction) origin, for `count` elements. get_accumulate stores the target's former
 * elements in `result`; with OFFPATH_NO_OP it ignores `origin`. offpath_reduction_supported says which
 * reductions are possible; OFFPATH_REPLACE and OFFPATH_NO_OP always are. */
OFFPATH_API offpath_status_t offpath_accumulate(offpath_window_h window, const void* origin, size_t count,
                                                offpath_type_t type, offpath_reduction_t reduction,
                                                const offpath_place_t* place, offpath_request_h* request);
OFFPATH_API offpath_status_t offpath_get_accumulate(offpath_window_h window, const void* origin, void* result,
                                                    size_t count, offpath_type_t type,
                                                    offpath_reduction_t reduction,
                                                    const offpath_place_t* place, offpath_request_h* request);
/* If the element at the target equals `compare`, byte by byte, it becomes `origin`. `result` gets its former
 * value. */
OFFPATH_API offpath_status_t offpath_compare_swap(offpath_window_h window, const void* origin,
                                                  const void* compare, void* result, offpath_type_t type,
                                                  uint32_t target, uint64_t offset,
                                                  offpath_request_h* request);

/* The request is done when all operations that this process started before on `target` (or
 * OFFPATH_ALL_TARGETS) are done there. With a null `request` the call waits. If a program has started very
 * many operations without a request, the library flushes by itself. The window's next flush, whatever its
 * target, or its end returns the errors that this flush has found. */
OFFPATH_API offpath_status_t offpath_window_flush(offpath_window_h window, uint32_t target,
                                                  offpath_request_h* request);

/* Orders the operations that this process starts later on `target` (or OFFPATH_ALL_TARGETS) after all that
 * it has started before there. Sends no message and does not wait. Local. */
OFFPATH_API offpath_status_t offpath_window_fence(offpath_window_h window, uint32_t target);

/* The short way is for small operations of callers that wait, such as OpenSHMEM's blocking calls. The
 * operation uses a connection from this process to the target's proxy and bypasses this process's own proxy.
 * That halves the hops, but this process itself sends and receives.
 *
 * A put, or an update without `result`, is done when the next flush of its target is done; its `origin` may
 * change when the call has returned. A call with a `result` waits for it. The order to other operations is
 * the same as without the short way. An operation has at most OFFPATH_DIRECT_BYTES bytes, and only reaches
 * memory that the target's device has mapped (offpath_mem_query at the target: OFFPATH_BACK_END_MAP).
 *
 * UNAVAILABLE means that nothing has happened and the caller must use the usual call. Reasons: the operation
 * is too large, there is no connection (yet), older operations are outstanding the usual way, or too many
 * came this way for which no caller waited. */
#define OFFPATH_DIRECT_BYTES 65536
#define OFFPATH_DIRECT_ELEMENTS 8192 /* of one strided operation */
OFFPATH_API offpath_status_t offpath_direct_put(offpath_window_h window, const void* origin, size_t bytes,
                                                uint32_t target, uint64_t offset);
OFFPATH_API offpath_status_t offpath_direct_get(offpath_window_h window, void* result, size_t bytes,
                                                uint32_t target, uint64_t offset);
/* The same for `count` elements of `element` bytes each. They are contiguous in this process, and start
 * `stride` bytes apart at the target. At most OFFPATH_DIRECT_ELEMENTS elements of at most 8 KiB, and
 * OFFPATH_DIRECT_BYTES in all, else UNAVAILABLE. A stride below the element's size is INVALID. */
OFFPATH_API offpath_status_t offpath_direct_put_strided(offpath_window_h window, const void* origin,
                                                        size_t element, size_t count, size_t stride,
                                                        uint32_t target, uint64_t offset);
OFFPATH_API offpath_status_t offpath_direct_get_strided(offpath_window_h window, void* result, size_t element,
                                                        size_t count, size_t stride, uint32_t target,
                                                        uint64_t offset);
/* Updates one element, as offpath_accumulate does, or, with a `result`, as offpath_get_accumulate does. */
OFFPATH_API offpath_status_t offpath_direct_update(offpath_window_h window, offpath_reduction_t reduction,
                                                   const void* origin, void* result, offpath_type_t type,
                                                   uint32_t target, uint64_t offset);
OFFPATH_API offpath_status_t offpath_direct_compare_swap(offpath_window_h window, const void* origin,
                                                         const void* compare, void* result,
                                                         offpath_type_t type, uint32_t target,
                                                         uint64_t offset);

typedef enum offpath_lock OFFPATH_ENUM_TYPE {
    OFFPATH_LOCK_SHARED = 1,
    OFFPATH_LOCK_EXCLUSIVE = 2
} offpath_lock_t;

/* Acquires the lock of the window at `target`. Any number of ranks may hold it shared, or one rank
 * exclusively. Exclusive requests are granted in their order. A shared request waits only for an exclusive
 * holder, so ranks that share without pause can starve exclusive requests. The request is done when this
 * rank holds the lock; with a null `request` the call waits. The lock excludes only other ranks that lock.
 * INVALID: this rank holds it already. */
OFFPATH_API offpath_status_t offpath_window_lock(offpath_window_h window, uint32_t target,
                                                 offpath_lock_t lock, offpath_request_h* request);
/* The same by the short way; waits only for the answer. UNAVAILABLE: another rank holds the lock, or the
 * short way is not possible now. Then nothing has happened. */
OFFPATH_API offpath_status_t offpath_direct_lock(offpath_window_h window, uint32_t target,
                                                 offpath_lock_t lock);
/* Releases the lock. Does not wait for outstanding operations, so flush first. */
OFFPATH_API offpath_status_t offpath_window_unlock(offpath_window_h window, uint32_t target);

#ifdef __cplusplus
}
#endif

#endif
