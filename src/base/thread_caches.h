// The setting of the C library by which its allocator keeps no freed blocks for each thread. The daemon runs
// so (proxy/steady_memory.h); who starts it sets it, to save the daemon a second start.
#pragma once

namespace offpath::thread_caches {

constexpr const char* variable = "GLIBC_TUNABLES";
constexpr const char* name = "glibc.malloc.tcache_count";
constexpr const char* off = "glibc.malloc.tcache_count=0";

}  // namespace offpath::thread_caches
