// What a lost device may still do to the memory of this process. The client records the loss. A front end
// asks before it uses the buffers of an operation again that the device has not ended. Threads: any.
#pragma once

#include <sys/types.h>

namespace offpath::lost_device {

// `daemon`: the process that could copy.
void record(pid_t daemon);
constexpr pid_t nobody = 0;    // nothing can touch the memory of this process any more
constexpr pid_t unknown = -1;  // a process that is not visible here, or a network card

// False while the device of this process lives, or when it can touch nothing any more. A daemon that was only
// stopped, or that hangs, may continue a copy that it has begun. One that has died may for a moment be seen
// to exist.
bool may_still_write();

}  // namespace offpath::lost_device
