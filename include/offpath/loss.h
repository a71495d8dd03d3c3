/* What is left of a lost device: for layers that finish its work by another way. offpath.h does not include
 * this header. */
#ifndef OFFPATH_LOSS_H
#define OFFPATH_LOSS_H

#include <offpath/windows.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum offpath_device_state OFFPATH_ENUM_TYPE {
    OFFPATH_DEVICE_SERVES = 0, /* not lost, as far as this process knows */
    OFFPATH_DEVICE_ENDED = 1,  /* lost, and it can no longer touch memory of this process */
    OFFPATH_DEVICE_SILENT = 2  /* lost, but it may still finish a copy into memory of this process */
} offpath_device_state_t;

/* The state of this process's own device. While it serves, an operation that has ended touches no memory any
 * more. A null context counts as SILENT. Takes up to a second if the device is just dying. Threads: as the
 * context. */
OFFPATH_API offpath_device_state_t offpath_context_device_state(offpath_context_h context);

/* A descriptor that becomes readable when this process's own device can no longer touch memory of this
 * process: a pidfd of its process, or of a remote device an event that the link is lost. The caller closes
 * it. -1: the process is not visible here, or the device's network card writes by itself (xgvmi). */
OFFPATH_API int offpath_context_device_end(offpath_context_h context);

/* Ends the process of this process's own device by SIGKILL if a signal has stopped it, because it might
 * continue and write memory of this process. Of a remote device, it gives up this end of the link if the
 * device has been silent for OFFPATH_LOST_AFTER_S seconds, three at least. Others must have given the device
 * up, or this process has. OK: the device has ended, or reaches this process no more. UNSUPPORTED: it is
 * neither stopped nor silent, is not visible, is another user's, or, if it is local, OFFPATH_END_STOPPED=off.
 * It takes a tenth of a second, and if it ends the process, as long as that needs to get a core and end: up
 * to nine seconds. Threads: any. */
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
 * offpath_mem_alloc that lives as long as the window. Call it before any rank uses the window. A remote
 * device changes each word by a message. UNSUPPORTED: a local device has not mapped that memory, or reaches
 * other memory with the help of a thread of this process (staged); or the device's network card writes memory
 * by itself (xgvmi). */
OFFPATH_API offpath_status_t offpath_window_keep_ledger(offpath_window_h window, uint64_t* words);

/* Marks: what a rank's device notes about each marked operation on the rank's memory, behind the words of the
 * ledger. They cover puts too, in any order.
 *
 *   OFFPATH_LEDGER_WORDS(ranks) words  the ledger
 *   OFFPATH_MARK_WORDS words           the marks of rank 0's operations, then those of rank 1, ... */
#define OFFPATH_MARK_WORDS 2177
#define OFFPATH_MARKS_WORDS(ranks) (OFFPATH_LEDGER_WORDS(ranks) + OFFPATH_MARK_WORDS * (size_t)(ranks))
/* A rank has fewer marked operations than this at one target that it does not know to be done. */
#define OFFPATH_MARKS_OUTSTANDING 4096

/* As offpath_window_keep_ledger, with OFFPATH_MARKS_WORDS words. UNSUPPORTED with a remote device. */
OFFPATH_API offpath_status_t offpath_window_keep_marks(offpath_window_h window, uint64_t* words);

/* Marks the next put or update that this rank starts on the window, which is one contiguous piece of at most
 * 128 KiB, or a put. `mark`: not 0, and another one for each operation to that target; they count up. Local,
 * and it checks nothing. Threads: as the context, with no other operation on the window between. */
OFFPATH_API void offpath_window_mark_next(offpath_window_h window, uint32_t mark);

typedef enum offpath_mark_state OFFPATH_ENUM_TYPE {
    OFFPATH_MARK_NOT_BEGUN = 0, /* an update has not happened; a put may be there in part */
    OFFPATH_MARK_BEGUN = 1,     /* the device ended in the middle of it */
    OFFPATH_MARK_APPLIED = 2,
    OFFPATH_MARK_APPLIED_WITH_RESULT = 3 /* it is one of the last 64 fetching updates of at most 8 bytes */
} offpath_mark_state_t;

/* Reads a copy of OFFPATH_MARK_WORDS words, which the device does not write any more. `result`: what the
 * update has returned, in the low bytes. */
OFFPATH_API offpath_mark_state_t offpath_mark_state(const uint64_t* marks, uint32_t mark, uint64_t* result);

/* Ends the session at this process's own device, and returns when no device touches memory of this process
 * any more. Everything outstanding ends with PEER_LOST. Afterwards the context accepts
 * offpath_context_attach_again and offpath_finalize only. Local. Errors: UNSUPPORTED (the device hangs and
 * may still write, or it is remote). Threads: no other call on the context may be running. */
OFFPATH_API offpath_status_t offpath_context_end_session(offpath_context_h context);

/* Attaches this process again, perhaps to another daemon of its node: it replaces the context by a new one,
 * as offpath_init makes it. Collective over the job, behind offpath_context_end_session on every rank. It
 * waits for the other ranks, and for a daemon, `limit_ns` at most; where OFFPATH_AUTOSTART is on and none has
 * come after a second, it starts one. It needs the launcher's data store, or an allgather callback of
 * offpath_init. On an error the context is gone, and null. Errors: those of offpath_init. */
OFFPATH_API offpath_status_t offpath_context_attach_again(offpath_context_h* context, uint64_t limit_ns);

#ifdef __cplusplus
}
#endif

#endif
