/* Memory that the device reaches without extra copies.
 *
 * Every call of this API accepts any memory of the process. With local attach, the device also maps memory
 * from offpath_mem_alloc (back end `map`), which saves one copy on each side. A remote device that can
 * import memory (back end `xgvmi`) reaches allocated and registered memory without a thread of this process.
 * To other remote devices it is ordinary memory.
 *
 * All calls are local. INVALID also means: null, or, when memory is made or declared, 0 bytes or more than
 * 2^47 bytes. */
#ifndef OFFPATH_MEMORY_H
#define OFFPATH_MEMORY_H

#include <offpath/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates `bytes` bytes (> 0), page-aligned and zeroed, which this process and its device share if they
 * can (offpath_mem_query tells). Up to 1 MiB, all pages are present at once; later ones come at first use. A
 * child of fork() has a copy of its own. Errors: INVALID, MEMORY (here or on the device, more than 4096
 * allocations, or more than `ulimit -f` allows), SYSTEM, PEER_LOST. Any thread. */
OFFPATH_API offpath_status_t offpath_mem_alloc(offpath_context_h context, size_t bytes, void** address);

/* Frees memory of offpath_mem_alloc. Waits until no operation of this process uses it and the device has
 * released it. If the device is lost, the memory is freed all the same. Errors: INVALID (`address` is not
 * the start of such memory). Threads: as the context. */
OFFPATH_API offpath_status_t offpath_mem_free(offpath_context_h context, void* address);

/* Keeps memory of offpath_mem_alloc mapped, with its contents, when the context ends: until offpath_mem_free
 * or the end of the process. Errors: INVALID (`address` is not the start of such memory). Any thread. */
OFFPATH_API offpath_status_t offpath_mem_keep(offpath_context_h context, void* address);

/* Declares that [address, address + bytes) will be used for communication. The memory must stay valid until
 * offpath_mem_deregister. Only back end `xgvmi` becomes faster by it. Regions may overlap. The call does not
 * check whether the memory exists. Errors: INVALID (also a range that wraps around). Threads: as the
 * context. */
OFFPATH_API offpath_status_t offpath_mem_register(offpath_context_h context, void* address, size_t bytes,
                                                  offpath_region_h* region);

/* The same for memory that the program has mapped itself, with MAP_SHARED and from offset 0, from the memory
 * file `fd` (memfd_create). With local attach the device maps the file too, as it maps memory of
 * offpath_mem_alloc. A remote device treats it as ordinary memory, unless it can import it. The file must be
 * sealed against shrinking (F_SEAL_SHRINK); `fd` may be closed after the call. The call does not make pages
 * present. Errors: INVALID (also an unsuitable file, or memory that overlaps an allocation or another shared
 * region), MEMORY, UNSUPPORTED, PEER_LOST. Threads: as the context. */
OFFPATH_API offpath_status_t offpath_mem_share(offpath_context_h context, int fd, void* address, size_t bytes,
                                               offpath_region_h* region);

/* Ends the region. Waits until no operation of this process uses a byte of it. After OFFPATH_OK the device no
 * longer touches the memory, and it may be unmapped. Errors: INVALID. Threads: as the context. */
OFFPATH_API offpath_status_t offpath_mem_deregister(offpath_region_h region);

/* Says how transfers from or to [address, address + bytes) reach the memory, and what they need of this
 * process. Does not access the memory. Errors: INVALID (null). Any thread. */
OFFPATH_API offpath_status_t offpath_mem_query(offpath_context_h context, const void* address, size_t bytes,
                                               offpath_back_end_t* back_end, offpath_progress_t* progress);

/* Returns the name of a back end, such as `staged`; `unknown` for other values. Never NULL. Any thread. */
OFFPATH_API const char* offpath_back_end_string(offpath_back_end_t back_end);

#ifdef __cplusplus
}
#endif

#endif
