/* Computation on the device: the device runs functions of the program while the host continues.
 *
 * A kernel is a function in a shared library that the device loads. Each kernel belongs to a stream. The
 * kernels of one stream run one after the other, in the order of their starts, in a process of their own on
 * the device. Kernels of several streams, and of several processes, run side by side, and communication
 * continues. A kernel that crashes ends only the kernels of its stream.
 *
 * What a kernel prints to standard output or standard error comes out at this process, line by line, with the
 * device's name in front. A kernel may run for as long as OFFPATH_KERNEL_SECONDS says (whole seconds; read by
 * offpath_kernel_load), or else offpathd's --kernel-seconds; one that takes longer is ended like one that
 * crashes.
 *
 * If device and host share memory of offpath_mem_alloc (offpath_mem_query says OFFPATH_BACK_END_MAP), the
 * kernel uses it in place. All other memory is copied to the device before the kernel runs, and back after
 * it. Pointers are valid for one call. Variables of a library belong to one stream. They keep their values
 * until the library is unloaded or a kernel of the stream has crashed.
 *
 * Errors of all calls: INVALID (null or an argument out of range), PEER_LOST (the device is lost). Threads:
 * as the context (types.h). */
#ifndef OFFPATH_COMPUTE_H
#define OFFPATH_COMPUTE_H

#include <offpath/request.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OFFPATH_KERNEL_ARGUMENT_BYTES 4096
#define OFFPATH_KERNEL_BUFFERS 16
#define OFFPATH_KERNEL_STREAMS 16
#define OFFPATH_KERNEL_ERROR_BYTES 4097 /* of the longest text of offpath_kernel_last_error */

typedef struct offpath_kernel* offpath_kernel_h; /* a function that the device has loaded */

/* The type of a kernel. It has C linkage and is visible outside its library (OFFPATH_API). `arguments` is a
 * copy of the bytes that offpath_compute was given, aligned to 64 bytes. buffers[i] has bytes[i] bytes; it
 * is aligned to at least 64 bytes if it is a copy, and null if it has 0 bytes. The kernel returns 0, or an
 * error of offpath_status_t, with which its request ends; any other value counts as OFFPATH_ERR_SYSTEM. It
 * may start threads, but may not call this API. */
typedef int (*offpath_kernel_fn)(const void* arguments, size_t argument_bytes, void* const* buffers,
                                 const size_t* bytes, size_t count);

/* How a kernel uses a buffer. The contents of an OFFPATH_OUT buffer are undefined when the kernel starts. */
typedef enum offpath_access OFFPATH_ENUM_TYPE {
    OFFPATH_IN = 1,
    OFFPATH_OUT = 2,
    OFFPATH_INOUT = 3
} offpath_access_t;

typedef struct offpath_kernel_buffer {
    void* address; /* anywhere in this process */
    size_t bytes;
    offpath_access_t access;
} offpath_kernel_buffer_t;

/* Has the device load the library at `path` and look up `symbol`. A path with a slash names a file: of this
 * system with local attach, of the device's system with remote attach. The device's dlopen searches for a
 * path without a slash. The call waits for the answer, and so for running kernels of its stream, 0. Errors
 * also: INVALID (no such library or symbol), ACCESS (the daemon runs as another user than this process),
 * UNSUPPORTED (the daemon runs with --no-kernels, a remote one without --allow-kernels, or it cannot start
 * processes). The reason is written to standard error. */
OFFPATH_API offpath_status_t offpath_kernel_load(offpath_context_h context, const char* path,
                                                 const char* symbol, offpath_kernel_h* kernel);

/* The same in another stream: 0 .. OFFPATH_KERNEL_STREAMS - 1. A function that is to run in several streams
 * is loaded in each of them. */
OFFPATH_API offpath_status_t offpath_kernel_load_in(offpath_context_h context, const char* path,
                                                    const char* symbol, uint32_t stream,
                                                    offpath_kernel_h* kernel);

/* Frees the handle. Started kernels continue; after them the device may unload the library. */
OFFPATH_API offpath_status_t offpath_kernel_unload(offpath_kernel_h kernel);

/* Starts the kernel; it runs when the kernels that were started before in its stream are done. The call
 * copies the `argument_bytes` bytes at `arguments` (0 .. OFFPATH_KERNEL_ARGUMENT_BYTES). `count` is 0 ..
 * OFFPATH_KERNEL_BUFFERS. The buffers belong to the kernel until the request is done, and must not overlap
 * if one of them is written. The request ends with the kernel's error, CANCELED (this kernel or one before
 * it in its stream crashed or took too long; offpath_kernel_last_error says how), ACCESS (a buffer does not
 * exist), MEMORY (the device has no room for copies) or PEER_LOST. */
OFFPATH_API offpath_status_t offpath_compute(offpath_kernel_h kernel, const void* arguments,
                                             size_t argument_bytes, const offpath_kernel_buffer_t* buffers,
                                             size_t count, offpath_request_h* request);

/* Records a run of the kernel in a group (primitives.h): at every start of the group it runs on the device
 * when the steps that it depends on are done. The arguments are copied now. The kernels of one stream run one
 * at a time, in the order in which they become ready. The kernel must stay loaded while the
 * group is used. The group's start ends with the errors of offpath_compute, and with UNSUPPORTED or INVALID
 * if the kernel is not loaded. A start that fails ends when its running kernel does. Errors also: INVALID
 * (the kernel is of another context). */
OFFPATH_API offpath_status_t offpath_group_compute(offpath_group_h group, offpath_kernel_h kernel,
                                                   const void* arguments, size_t argument_bytes,
                                                   const offpath_kernel_buffer_t* buffers, size_t count);

/* Writes to `text` why the last one of this process's kernels failed, of those whose end it has seen:
 * the symbol, and the signal that ended its process, its limit of time, or what it returned. An empty string:
 * none has failed. `bytes` is at least 1; a text that does not fit is cut. The reason is also written to
 * standard error, once, with the device's name. The call asks the device, and so does not return before
 * standard output has taken what the kernels have printed until now. Errors also: PEER_LOST (the device is
 * lost, and has told no reason). */
OFFPATH_API offpath_status_t offpath_kernel_last_error(offpath_context_h context, char* text, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
