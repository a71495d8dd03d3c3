// What a lost device may still do to the memory of this process. The client records the loss. A front end
// asks before it uses the buffers of an operation again that the device has not ended. Threads: any.
#pragma once

#include <atomic>
#include <cstdint>

#include <sys/types.h>

namespace offpath::lost_device {

// `daemon`: the process that could copy.
void record(pid_t daemon);
constexpr pid_t nobody = 0;    // nothing can touch the memory of this process any more
constexpr pid_t unknown = -1;  // a process that is not visible here, or a network card

// The device writes by system calls of its thread `thread`, and `writing` is not 0 while it does. It begins
// no more of them.
void record_writes(const std::atomic<std::uint32_t>* writing, pid_t daemon, pid_t thread);
void forget_writes(const std::atomic<std::uint32_t>* writing);

// False while the device of this process lives, or when it has died. One that has died may for a moment be
// seen to exist. A daemon that was only stopped, or that hangs, may continue.
bool may_still_write();
// The same for writes by system call, if they are recorded. A stopped daemon may only be about to finish one.
bool may_still_call();

}  // namespace offpath::lost_device
