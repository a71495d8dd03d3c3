/* What is left of a lost device: for layers that finish its work by another way. offpath.h does not include
 * this header. */
#ifndef OFFPATH_LOSS_H
#define OFFPATH_LOSS_H

#include <offpath/context.h>

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

#ifdef __cplusplus
}
#endif

#endif
