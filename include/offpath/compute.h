/* Computation on the device: functions of the program's own, run by the device while the host goes on.
 *
 * A kernel is a function in a shared library that the device loads. Kernels run in a process of their own
 * beside the daemon, one such process for each process that uses them: in the order in which they were
 * started, side by side with those of other processes, and with all communication. A kernel that crashes
 * takes what was started with it and nothing else.
 *
 * Memory of offpath_mem_alloc is handed to the kernel where it lies, if device and host share their memory
 * (offpath_mem_query says OFFPATH_BACK_END_MAP). All other memory is copied: to the device before the kernel
 * runs, back after it. Pointers hold for one call; what a library keeps in variables of its own stays until
 * the library is unloaded or a kernel of the process has crashed. */
#ifndef OFFPATH_COMPUTE_H
#define OFFPATH_COMPUTE_H

#include <offpath/request.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OFFPATH_KERNEL_ARGUMENT_BYTES 4096
#define OFFPATH_KERNEL_BUFFERS 16

typedef struct offpath_kernel* offpath_kernel_h; /* a function that the device has loaded */

/* What a kernel has to look like, with C linkage and visible outside its library (OFFPATH_API). `arguments`
 * is a copy of what offpath_compute was given, aligned to 64 bytes; buffers[i] has bytes[i] bytes, aligned to
 * 64 bytes at least where it is a copy, and is null where it has none. Returns 0, or an error of
 * offpath_status_t (any other value counts as OFFPATH_ERR_SYSTEM), with which its request ends. It may make
 * threads, and no calls of this API. */
typedef int (*offpath_kernel_fn)(const void* arguments, size_t argument_bytes, void* const* buffers,
                                 const size_t* bytes, size_t count);

/* What a kernel does to a buffer. One that is only written has undefined contents at its start. */
typedef enum offpath_access { OFFPATH_IN = 1, OFFPATH_OUT = 2, OFFPATH_INOUT = 3 } offpath_access_t;

typedef struct offpath_kernel_buffer {
    void* address; /* anywhere in this process */
    size_t bytes;
    offpath_access_t access;
} offpath_kernel_buffer_t;

/* Has the device load the library at `path` and look `symbol` up. A path with a slash names a file, of this
 * system with local attach, of the device's own with remote attach; one without is looked for as dlopen does.
 * Waits for the answer, and thereby for kernels of this process that run. INVALID: no such library or symbol;
 * ACCESS: the daemon runs as another user than this process; UNSUPPORTED: it was started with --no-kernels,
 * or cannot start processes. The reason is written to standard error. */
OFFPATH_API offpath_status_t offpath_kernel_load(offpath_context_h context, const char* path,
                                                 const char* symbol, offpath_kernel_h* kernel);

/* Gives the handle back. What was started with it goes on; then the library may be unloaded. */
OFFPATH_API offpath_status_t offpath_kernel_unload(offpath_kernel_h kernel);

/* Starts the kernel when those before it, of this process, are done. `arguments` is copied by the call. The
 * buffers belong to the kernel until the request is done and must not overlap where one of them is written.
 * The request ends with the kernel's error, CANCELED when this kernel or one before it crashed, ACCESS when a
 * buffer is not there, MEMORY when the device has no room for copies, PEER_LOST when the device is lost. */
OFFPATH_API offpath_status_t offpath_compute(offpath_kernel_h kernel, const void* arguments,
                                             size_t argument_bytes, const offpath_kernel_buffer_t* buffers,
                                             size_t count, offpath_request_h* request);

#ifdef __cplusplus
}
#endif

#endif
