#include "memory/copy.h"

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OFFPATH_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OFFPATH_SANITIZED 1
#endif
#endif

namespace offpath::memory {

#if defined(__x86_64__) && !defined(OFFPATH_SANITIZED)

namespace {

constexpr std::size_t long_copy = std::size_t{1} << 20;

// CPUID leaf 7, EBX bit 9: "enhanced rep movsb".
bool has_fast_string_move() {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & (1u << 9)) != 0;
}

}  // namespace

void copy_bytes(void* destination, const void* source, std::size_t bytes) {
    static const bool fast_string_move = has_fast_string_move();
    if (bytes < long_copy || !fast_string_move) {
        std::memcpy(destination, source, bytes);
        return;
    }
    asm volatile("rep movsb" : "+D"(destination), "+S"(source), "+c"(bytes) : : "memory");
}

#else

void copy_bytes(void* destination, const void* source, std::size_t bytes) {
    std::memcpy(destination, source, bytes);
}

#endif

}  // namespace offpath::memory
