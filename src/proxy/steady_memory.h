// The daemon's memory must not grow from job to job. The C library's allocator keeps freed blocks for each
// thread, and every one keeps its page from being returned. Which pages these are changes with every job, so
// the daemon would grow for hours. The caches can only be switched off when a program starts.
#pragma once

namespace offpath::proxy {

// Executes this program again without the allocator's caches, unless it already runs so or GLIBC_TUNABLES
// has another size for them. Returns when the caches are off, or if that is not possible here. Programs that
// this process starts get the user's GLIBC_TUNABLES. Threads: call it before there are others.
void run_without_thread_caches(char** arguments);

}  // namespace offpath::proxy
