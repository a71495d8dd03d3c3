/* Memory that the device reaches without copies.
 *
 * Any memory of the process can be used in every call of this API. Memory from offpath_mem_alloc is mapped by
 * the device too (back end `map`) and saves one copy on each side, unless the device has an operating system
 * of its own, to which it is memory as any other. A device of its own that can import memory (back end
 * `xgvmi`) reaches what is allocated or registered without a thread of this process. */
#ifndef OFFPATH_MEMORY_H
#define OFFPATH_MEMORY_H

#include <offpath/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates `bytes` bytes (> 0), page-aligned and zeroed, that this process and its device share where they
 * can (offpath_mem_query tells). Local.
 * Errors: INVALID, MEMORY, SYSTEM, PEER_LOST. */
OFFPATH_API offpath_status_t offpath_mem_alloc(offpath_context_h context, size_t bytes, void** address);

/* Frees memory of offpath_mem_alloc: waits until the device has let go of it. INVALID if `address` is not the
 * start of such memory. */
OFFPATH_API offpath_status_t offpath_mem_free(offpath_context_h context, void* address);

/* Memory of offpath_mem_alloc stays mapped, with its contents, when the context ends; until offpath_mem_free
 * or the process's end. Local. INVALID if `address` is not the start of such memory. */
OFFPATH_API offpath_status_t offpath_mem_keep(offpath_context_h context, void* address);

/* Makes [address, address + bytes) known to the device. The memory must stay valid until deregister. Local.
 */
OFFPATH_API offpath_status_t offpath_mem_register(offpath_context_h context, void* address, size_t bytes,
                                                  offpath_region_h* region);

/* The same for memory that the program has mapped, shared and from the file's start on, from the memory file
 * `fd`: a device with which the process shares memory (local attach) maps the file too, as it does what
 * offpath_mem_alloc made; to others it is memory as any other. The file must be sealed against shrinking
 * (F_SEAL_SHRINK), and `fd` may be closed afterwards. Pages come as they are used. Local.
 * Errors: INVALID (arguments; the memory overlaps a region), MEMORY, UNSUPPORTED, PEER_LOST. */
OFFPATH_API offpath_status_t offpath_mem_share(offpath_context_h context, int fd, void* address, size_t bytes,
                                               offpath_region_h* region);

/* Revokes the region at the device, with an acknowledgement: after OFFPATH_OK nothing touches the memory any
 * more. */
OFFPATH_API offpath_status_t offpath_mem_deregister(offpath_region_h region);

/* Back end and progress guarantee that transfers from or to `address` have. Local, thread-safe. */
OFFPATH_API offpath_status_t offpath_mem_query(offpath_context_h context, const void* address, size_t bytes,
                                               offpath_back_end_t* back_end, offpath_progress_t* progress);

/* The name of a back end, as in `staged`; `unknown` for values that are none. Never NULL. Thread-safe. */
OFFPATH_API const char* offpath_back_end_string(offpath_back_end_t back_end);

#ifdef __cplusplus
}
#endif

#endif
