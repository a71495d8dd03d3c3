// A hint to the processor for loops that wait for memory to change.
#pragma once

namespace offpath {

inline void pause_cpu() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace offpath
