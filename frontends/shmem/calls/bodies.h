// Functions that the generated code calls: they convert the types of shmem.h to the core's bytes and bit
// patterns.
#pragma once

#include <shmem.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "calls/definition.h"
#include "collectives/collectives.h"
#include "core.h"
#include "locks.h"
#include "teams/team.h"
#include "waiting.h"
#include "world.h"

// The standard's complex types are those of C, which C++ compilers warn about.
#pragma GCC diagnostic ignored "-Wpedantic"
// Work arrays, for instance.
#pragma GCC diagnostic ignored "-Wunused-parameter"

namespace offpath::shmem {

// Saturates: a size that does not fit into the address space then fails because it leaves symmetric memory.
inline std::size_t bytes_of(std::size_t n, std::size_t element) {
    std::size_t bytes;
    return __builtin_mul_overflow(n, element, &bytes) ? SIZE_MAX / 2 : bytes;
}
template <class T>
std::size_t bytes_of(std::size_t n) {
    return bytes_of(n, sizeof(T));
}

// Called by calls whose values are defined from shmem_init on.
inline int after_init(int value) {
    if (world.pes == 0) [[unlikely]]
        fail_life();
    return value;
}

// Checks the variables of a wait or a test. With OFFPATH_SHMEM_CHECK=1, ends the job if they are not
// symmetric, because no other PE could change them.
template <class T>
T* looked_at(T* variables, std::size_t n) {
    if (world.checks && n > 0) [[unlikely]]
        check_variables(const_cast<const std::remove_cv_t<T>*>(variables), bytes_of<T>(n));
    return variables;
}

// Serves old calls that take an int.
inline std::size_t count_of(int n) {
    if (n < 0) fail("the number of elements is below 0");
    return static_cast<std::size_t>(n);
}

template <class T>
std::uint64_t bits(T value) {
    std::uint64_t pattern = 0;
    std::memcpy(&pattern, &value, sizeof value);
    return pattern;
}

template <class T>
T get_one(Context& context, const T* source, int pe) {
    T value;
    get(context, &value, source, sizeof value, pe, false);
    return value;
}

template <class T>
T fetching(Context& context, Amo kind, const T* dest, T operand, int pe) {
    T result;
    amo(context, kind, sizeof result, const_cast<T*>(dest), bits(operand), 0, &result, pe, false);
    return result;
}

template <class T>
T compare_swapping(Context& context, T* dest, T condition, T value, int pe) {
    T result;
    amo(context, Amo::compare_swap, sizeof result, dest, bits(value), bits(condition), &result, pe, false);
    return result;
}

// Without a context there is nothing to order.
inline void fence_if_valid(void* context) {
    if (context != nullptr) fence(context_of(context));
}
inline void quiet_if_valid(void* context) {
    if (context != nullptr) quiet(context_of(context));
}

inline void ignore() {}

}  // namespace offpath::shmem
