// The library of kernels that tests of kernels have the device load.
#include <offpath/compute.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

namespace {

int calls = 0;

void sleep_ms(long ms) {
    usleep(static_cast<useconds_t>(ms * 1000));
}

std::string text(const void* arguments, std::size_t bytes) {
    return {static_cast<const char*>(arguments), bytes};
}

}  // namespace

extern "C" {

// out = a * factor + b; b += 1
OFFPATH_API int test_combine(const void* arguments, size_t argument_bytes, void* const* buffers,
                             const size_t* bytes, size_t count) {
    double factor;
    if (argument_bytes != sizeof factor || count != 3 || bytes[0] != bytes[1] || bytes[1] != bytes[2])
        return OFFPATH_ERR_INVALID;
    std::memcpy(&factor, arguments, sizeof factor);
    const auto* a = static_cast<const double*>(buffers[0]);
    auto* b = static_cast<double*>(buffers[1]);
    auto* out = static_cast<double*>(buffers[2]);
    for (size_t i = 0; i < bytes[0] / sizeof(double); ++i) {
        out[i] = a[i] * factor + b[i];
        b[i] += 1;
    }
    return 0;
}

// Writes the user that the kernel runs as.
OFFPATH_API int test_user(const void*, size_t, void* const* buffers, const size_t*, size_t) {
    const std::uint32_t user = geteuid();
    std::memcpy(buffers[0], &user, sizeof user);
    return 0;
}

// Each element becomes 3 * element + argument, modulo 2^64.
OFFPATH_API int test_step(const void* arguments, size_t, void* const* buffers, const size_t* bytes, size_t) {
    std::uint64_t add;
    std::memcpy(&add, arguments, sizeof add);
    auto* at = static_cast<std::uint64_t*>(buffers[0]);
    for (size_t i = 0; i < bytes[0] / sizeof *at; ++i)
        at[i] = 3 * at[i] + add;
    return 0;
}

// Overwrites a buffer that it may only read.
OFFPATH_API int test_scribble(const void*, size_t, void* const* buffers, const size_t* bytes, size_t) {
    std::memset(buffers[0], 0xff, bytes[0]);
    return 0;
}

// Reports the buffers and arguments that it was given.
OFFPATH_API int test_describe(const void* arguments, size_t argument_bytes, void* const* buffers,
                              const size_t* bytes, size_t count) {
    auto* out = static_cast<std::uint64_t*>(buffers[0]);
    out[0] = count;
    out[1] = argument_bytes;
    out[2] = 0;
    for (size_t i = 0; i < argument_bytes; ++i)
        out[2] += static_cast<const unsigned char*>(arguments)[i];
    out[3] = reinterpret_cast<std::uintptr_t>(arguments) % 64;
    for (size_t i = 1; i < count; ++i)
        out[3 + i] =
            bytes[i] == 0 ? buffers[i] != nullptr : reinterpret_cast<std::uintptr_t>(buffers[i]) % 64;
    return 0;
}

OFFPATH_API int test_count_calls(const void*, size_t, void* const* buffers, const size_t*, size_t) {
    *static_cast<int*>(buffers[0]) = ++calls;
    return 0;
}

OFFPATH_API int test_result(const void* arguments, size_t, void* const*, const size_t*, size_t) {
    return *static_cast<const int*>(arguments);
}

OFFPATH_API int test_sleep(const void* arguments, size_t, void* const*, const size_t*, size_t) {
    sleep_ms(*static_cast<const int*>(arguments));
    return 0;
}

// Leaves two processes that have cut their ties to this one: a daemon and its stopped child.
OFFPATH_API int test_leave_processes(const void*, size_t, void* const*, const size_t*, size_t) {
    if (fork() != 0) return 0;
    if (setsid() < 0 || fork() != 0) _exit(0);
    for (int descriptor = 0; descriptor < 64; ++descriptor)
        close(descriptor);
    if (fork() == 0) raise(SIGSTOP);
    for (;;)
        pause();
}
OFFPATH_API int test_crash(const void*, size_t, void* const*, const size_t*, size_t) {
    raise(SIGSEGV);
    return 0;
}

OFFPATH_API int test_leave(const void*, size_t, void* const*, const size_t*, size_t) {
    _exit(3);
}

OFFPATH_API int test_throw(const void*, size_t, void* const*, const size_t*, size_t) {
    throw std::bad_alloc();
}

// Uses no time of a core.
OFFPATH_API int test_endless(const void*, size_t, void* const*, const size_t*, size_t) {
    while (true)
        pause();
}

// Prints as many lines as the argument says.
OFFPATH_API int test_print(const void* arguments, size_t, void* const*, const size_t*, size_t) {
    for (int i = 0; i < *static_cast<const int*>(arguments); ++i)
        std::printf("this is line number %d\n", i);
    std::fprintf(stderr, "to standard error\n");
    std::printf("the last one");
    return 0;
}

OFFPATH_API int test_print_and_crash(const void*, size_t, void* const*, const size_t*, size_t) {
    std::printf("before the crash\n");
    raise(SIGABRT);
    return 0;
}

// `arguments` has two paths. The kernel makes the first file and waits for the second.
OFFPATH_API int test_meet(const void* arguments, size_t argument_bytes, void* const*, const size_t*, size_t) {
    const std::string paths = text(arguments, argument_bytes);
    const std::string mine = paths.substr(0, paths.find(' ')), other = paths.substr(paths.find(' ') + 1);
    close(open(mine.c_str(), O_WRONLY | O_CREAT, 0600));
    for (int i = 0; i < 10000; ++i) {
        if (access(other.c_str(), F_OK) == 0) return 0;
        sleep_ms(5);
    }
    return OFFPATH_ERR_UNAVAILABLE;
}
}
