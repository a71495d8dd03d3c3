/* What is left of a lost device: for layers that finish its work by another way. offpath.h does not include
 * this header. */
#ifndef OFFPATH_LOSS_H
#define OFFPATH_LOSS_H

#include <offpath/windows.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum offpath_device_state {
    OFFPATH_DEVICE_SERVES = 0, /* not lost, as far as this process knows */
    OFFPATH_DEVICE_ENDED = 1,  /* lost, and it can no longer touch memory of this process */
    OFFPATH_DEVICE_SILENT = 2  /* lost, but it may still finish a copy into memory of this process */
} offpath_device_state_t;

/* The state of this process's own device. While it serves, an operation that has ended touches no memory any
 * more. A null context counts as SILENT. Takes up to a second if the device is just dying. Threads: as the
 * context. */
OFFPATH_API offpath_device_state_t offpath_context_device_state(offpath_context_h context);

/* A pidfd of the process of this process's own device, which becomes readable when that process has ended.
 * The caller closes it. -1: it is not visible here. */
OFFPATH_API int offpath_context_device_process(offpath_context_h context);

/* Ends the process of this process's own device by SIGKILL if a signal has stopped it, because it might
 * continue and write memory of this process. Others must have given the device up, or this process has. OK:
 * it has ended. UNSUPPORTED: it is not stopped, is not visible, is another user's, or
 * OFFPATH_END_STOPPED=off. It takes a tenth of a second, or up to a second more if it ends the process.
 * Threads: as the context. */
OFFPATH_API offpath_status_t offpath_context_end_stopped_device(offpath_context_h context);

/* The ledger of this rank's part of a window: words in its own memory that outlive its device.
 *
 *   word 0              not 0: the device touches this rank's memory of the window no more
 *   word 1 + r          bytes of updates of rank r that it has begun to apply to this rank's memory
 *   word 1 + ranks + r  bytes of updates of rank r that it has applied
 *
 * A device sets word 0 when a rank of the window, or the device of one, is lost. From then on it accepts no
 * operation on this rank's memory, and gives no lock; its own rank's operations on others continue. If the
 * device itself is lost, only the rank can say whether it touches memory any more. */
#define OFFPATH_LEDGER_WORDS(ranks) (1 + 2 * (size_t)(ranks))

/* Makes the device keep the ledger. `words`: OFFPATH_LEDGER_WORDS of the window's ranks, all 0, in memory of
 * offpath_mem_alloc that lives as long as the window. Call it before any rank uses the window. UNSUPPORTED:
 * the device has not mapped that memory. */
OFFPATH_API offpath_status_t offpath_window_keep_ledger(offpath_window_h window, uint64_t* words);

#ifdef __cplusplus
}
#endif

#endif
