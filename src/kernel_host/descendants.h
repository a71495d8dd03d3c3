// The processes below a process, by the system's list of processes (/proc), and their end. Orphans among them
// are found if the process has been made their new parent (PR_SET_CHILD_SUBREAPER). Threads: any.
#pragma once

#include <chrono>
#include <functional>

#include <sys/types.h>

namespace offpath::kernel_host {

// Kills the children of the calling process that are `meant`, and all processes below them, until none is
// left, and reaps the children. False: some were left when the time was over, for instance in a system call
// that does not end.
bool end_children(const std::function<bool(pid_t)>& meant, std::chrono::milliseconds limit);

}  // namespace offpath::kernel_host
