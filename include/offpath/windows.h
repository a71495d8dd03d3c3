/* Windows: memory of every rank of a team that the other ranks read, write and update without its doing.
 *
 * The proxy of the target does everything for it, whoever asks: puts, gets, updates and locks need nothing of
 * the target's process, and updates of the same memory are atomic to each other, element by element. Updates
 * are accumulate, get_accumulate and compare_swap; those of one rank to one target are applied in the order
 * of the calls. Nothing else has an order: flush, or fence, between what must follow each other.
 *
 * An operation with a `request` is done, at the target too, when the request is. With a null `request` the
 * next flush of its target waits for it and returns the first error among such operations. Buffers must stay
 * as they are until then; segments, and origins of at most OFFPATH_INLINE_BYTES, are copied by the call.
 *
 * Offsets are bytes from the start of the target's memory; in a dynamic window they are addresses in the
 * target's process. What leaves the target's memory ends with OFFPATH_ERR_ACCESS and touches nothing. */
#ifndef OFFPATH_WINDOWS_H
#define OFFPATH_WINDOWS_H

#include <offpath/collectives.h>
#include <offpath/request.h>
#include <offpath/team.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct offpath_window* offpath_window_h;

/* As the target of a flush: all. */
#define OFFPATH_ALL_TARGETS UINT32_MAX

/* Origins up to this size may change once the call has returned. */
#define OFFPATH_INLINE_BYTES 4096

/* Most segments of one call. */
#define OFFPATH_MAX_SEGMENTS 65536

/* A piece of a target's memory. */
typedef struct offpath_segment {
    uint64_t offset;
    uint64_t bytes; /* > 0; in updates a multiple of the element's size */
} offpath_segment_t;

/* Where an operation takes place: at `offset` of rank `target`, or, with `segment_count` > 0, in those
 * segments one after the other, which together have the size of the operation. */
typedef struct offpath_place {
    uint32_t target;
    uint64_t offset;
    const offpath_segment_t* segments;
    uint32_t segment_count;
} offpath_place_t;

/* Makes a window of `bytes` bytes at `base` (may differ from rank to rank, and be 0). Collective over the
 * team, in the order of its collectives; returns when all ranks may use it. Where a rank fails, by its
 * arguments or otherwise, the call fails on all ranks and leaves nothing behind. */
OFFPATH_API offpath_status_t offpath_window_create(offpath_team_h team, void* base, size_t bytes,
                                                   offpath_window_h* window);
/* A window to which each rank attaches memory when it likes. */
OFFPATH_API offpath_status_t offpath_window_create_dynamic(offpath_team_h team, offpath_window_h* window);

/* Collective; waits for this rank's operations on the window, then for all ranks. After it nothing touches
 * the memory any more. */
OFFPATH_API offpath_status_t offpath_window_destroy(offpath_window_h window);

/* Exposes [base, base + bytes) of this process in a dynamic window. Ranges must not overlap. Local. */
OFFPATH_API offpath_status_t offpath_window_attach(offpath_window_h window, void* base, size_t bytes);
/* `base` as attached. After it nothing touches the memory any more. Local. */
OFFPATH_API offpath_status_t offpath_window_detach(offpath_window_h window, void* base);

/* `bytes` bytes from `origin` to the target, or from there into `result`. */
OFFPATH_API offpath_status_t offpath_put(offpath_window_h window, const void* origin, size_t bytes,
                                         const offpath_place_t* place, offpath_request_h* request);
OFFPATH_API offpath_status_t offpath_get(offpath_window_h window, void* result, size_t bytes,
                                         const offpath_place_t* place, offpath_request_h* request);

/* target = target (reduction) origin, for `count` elements. get_accumulate gives the target's former elements
 * in `result`; with OFFPATH_NO_OP, `origin` is ignored. offpath_reduction_supported tells what can be
 * computed; OFFPATH_REPLACE and OFFPATH_NO_OP always can. */
OFFPATH_API offpath_status_t offpath_accumulate(offpath_window_h window, const void* origin, size_t count,
                                                offpath_type_t type, offpath_reduction_t reduction,
                                                const offpath_place_t* place, offpath_request_h* request);
OFFPATH_API offpath_status_t offpath_get_accumulate(offpath_window_h window, const void* origin, void* result,
                                                    size_t count, offpath_type_t type,
                                                    offpath_reduction_t reduction,
                                                    const offpath_place_t* place, offpath_request_h* request);
/* If the element at the target equals `compare`, byte by byte, it becomes `origin`; `result` gets what it
 * was.
 */
OFFPATH_API offpath_status_t offpath_compare_swap(offpath_window_h window, const void* origin,
                                                  const void* compare, void* result, offpath_type_t type,
                                                  uint32_t target, uint64_t offset,
                                                  offpath_request_h* request);

/* Done when all that this process has started before on `target` (or OFFPATH_ALL_TARGETS) is done there. With
 * a null `request` it waits. A program that starts very many operations without a request makes the library
 * flush by itself; errors that this finds are told by the window's next flush, whatever its target, or by its
 * end. */
OFFPATH_API offpath_status_t offpath_window_flush(offpath_window_h window, uint32_t target,
                                                  offpath_request_h* request);

/* What this process starts later on `target` (or OFFPATH_ALL_TARGETS) takes place there after all that it has
 * started before is done there. Costs no message and does not wait. Local. */
OFFPATH_API offpath_status_t offpath_window_fence(offpath_window_h window, uint32_t target);

/* The short way, for small operations of callers that wait, as OpenSHMEM's blocking ones do: by a connection
 * of this process to the target's proxy, without its own proxy between. It costs this process the sending and
 * receiving, and saves half of the hops.
 *
 * A put, or an update without `result`, is done when the next flush of its target is; its `origin` may change
 * once the call has returned. What has a `result` waits for it. Order to other operations is the same as
 * without the short way. At most OFFPATH_DIRECT_BYTES bytes, and only for memory that the target's device has
 * mapped (offpath_mem_query at the target: OFFPATH_BACK_END_MAP).
 *
 * OFFPATH_ERR_UNAVAILABLE: not this way, or not now (there is no such connection, or not yet; older
 * operations are under way by the other; many are by this one): nothing has happened, and the usual call is
 * right. */
#define OFFPATH_DIRECT_BYTES 65536
#define OFFPATH_DIRECT_ELEMENTS 8192 /* of one strided operation */
OFFPATH_API offpath_status_t offpath_direct_put(offpath_window_h window, const void* origin, size_t bytes,
                                                uint32_t target, uint64_t offset);
OFFPATH_API offpath_status_t offpath_direct_get(offpath_window_h window, void* result, size_t bytes,
                                                uint32_t target, uint64_t offset);
/* `count` elements of `element` bytes, whose beginnings are `stride` bytes apart at the target and which lie
 * side by side here: at most OFFPATH_DIRECT_ELEMENTS of at most 8 KiB, OFFPATH_DIRECT_BYTES in all, else
 * OFFPATH_ERR_UNAVAILABLE. A stride below the element's size is invalid. */
OFFPATH_API offpath_status_t offpath_direct_put_strided(offpath_window_h window, const void* origin,
                                                        size_t element, size_t count, size_t stride,
                                                        uint32_t target, uint64_t offset);
OFFPATH_API offpath_status_t offpath_direct_get_strided(offpath_window_h window, void* result, size_t element,
                                                        size_t count, size_t stride, uint32_t target,
                                                        uint64_t offset);
/* One element, as offpath_accumulate, or with `result` as offpath_get_accumulate. */
OFFPATH_API offpath_status_t offpath_direct_update(offpath_window_h window, offpath_reduction_t reduction,
                                                   const void* origin, void* result, offpath_type_t type,
                                                   uint32_t target, uint64_t offset);
OFFPATH_API offpath_status_t offpath_direct_compare_swap(offpath_window_h window, const void* origin,
                                                         const void* compare, void* result,
                                                         offpath_type_t type, uint32_t target,
                                                         uint64_t offset);

typedef enum offpath_lock { OFFPATH_LOCK_SHARED = 1, OFFPATH_LOCK_EXCLUSIVE = 2 } offpath_lock_t;

/* The lock of the window at `target`: held by any number of sharers or by one rank. Exclusive askers are
 * served in the order of asking; who asks for a shared lock waits for an exclusive holder only, so programs
 * that never stop sharing keep writers waiting. The request is done when this rank holds it, with a null
 * `request` the call waits. It excludes others that lock, and nothing else. INVALID: this rank holds it
 * already. */
OFFPATH_API offpath_status_t offpath_window_lock(offpath_window_h window, uint32_t target,
                                                 offpath_lock_t lock, offpath_request_h* request);
/* The same by the short way, waiting for the answer only. OFFPATH_ERR_UNAVAILABLE: somebody else holds it, or
 * it does not go this way now; nothing has happened. */
OFFPATH_API offpath_status_t offpath_direct_lock(offpath_window_h window, uint32_t target,
                                                 offpath_lock_t lock);
/* Gives it back. Flush first: operations under way are not waited for. */
OFFPATH_API offpath_status_t offpath_window_unlock(offpath_window_h window, uint32_t target);

#ifdef __cplusplus
}
#endif

#endif
