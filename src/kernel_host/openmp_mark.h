// The file of shared memory by which LLVM's OpenMP library marks a process that uses it. The library removes
// it in exit(), which processes of device code do not call. Threads: any.
#pragma once

#include <sys/types.h>

namespace offpath::kernel_host {

// Removes the mark of a process that has ended and is not reaped yet: no later process has its number.
void remove_openmp_mark(pid_t pid);

}  // namespace offpath::kernel_host
