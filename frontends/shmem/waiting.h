// Waiting until other PEs change memory of this process: PEs of the node by stores, all others through the
// device. Pure templates that know nothing about PEs.
//
// A wait first spins for a while. Then it yields its core, because other PEs may share the core, and the
// library's own threads may have to deliver the change. Then it sleeps, in steps that are a small part of the
// time waited so far. About every two seconds it checks that the device and the other PEs are still there.
#pragma once

#include "base/pause.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace offpath::shmem {

[[noreturn]] void fail(const std::string& text);

class Waiter {
  public:
    void pause() {
        if (spins_ < limit_) [[likely]] {
            ++spins_;
            pause_cpu();
        } else {
            rest();
        }
    }
    // Sets how long to spin: less if PEs share cores. Called once at the start.
    static void share_cores(bool shared);
    static bool cores_shared() { return limit_ == spins_shared; }

  private:
    void rest();

    static constexpr int spins_alone = 4000, spins_shared = 50;
    static int limit_;
    int spins_ = 0;
    std::uint64_t since_ns_ = 0;
    std::uint64_t looked_ns_ = 0;  // the last check of the device: the time waited until then
};

template <class Done>
void wait_for(Done done) {
    Waiter waiter;
    while (!done())
        waiter.pause();
}

template <class T>
T load(const volatile T* variable) {
    T value;
    __atomic_load(const_cast<const T*>(variable), &value, __ATOMIC_ACQUIRE);
    return value;
}

// The values of SHMEM_CMP_*.
enum Comparison : int {
    compare_equal = 1,
    compare_not_equal,
    compare_greater,
    compare_greater_equal,
    compare_less,
    compare_less_equal,
};
[[noreturn]] void fail_comparison(int comparison);

template <class T>
bool holds(T left, int comparison, T right) {
    switch (comparison) {
        case compare_equal:
            return left == right;
        case compare_not_equal:
            return left != right;
        case compare_greater:
            return left > right;
        case compare_greater_equal:
            return left >= right;
        case compare_less:
            return left < right;
        case compare_less_equal:
            return left <= right;
        default:
            fail_comparison(comparison);
    }
}

// The values that a vector of variables is compared with: one for all, or one for each.
template <class T>
struct Same {
    T value;
    T operator[](std::size_t) const { return value; }
};
template <class T>
struct Each {
    const T* values;
    T operator[](std::size_t i) const { return values[i]; }
};
template <class T>
Same(T) -> Same<T>;
template <class T>
Each(T*) -> Each<T>;

// Whether variable `i` is part of the set.
inline bool counts(const int* status, std::size_t i) {
    return status == nullptr || status[i] == 0;
}

// A program's test found no change. From time to time this yields the core, if PEs share it.
void polled_in_vain();

template <class T>
int test(const volatile T* variable, int comparison, T value) {
    if (holds(load(variable), comparison, value)) return 1;
    polled_in_vain();
    return 0;
}

template <class T>
T wait_until(const volatile T* variable, int comparison, T value) {
    T seen;
    wait_for([&] { return holds(seen = load(variable), comparison, value); });
    return seen;
}

template <class T, class Values>
int test_all(const volatile T* variables, std::size_t n, const int* status, int comparison, Values values) {
    for (std::size_t i = 0; i < n; ++i) {
        if (!counts(status, i) || holds(load(variables + i), comparison, values[i])) continue;
        polled_in_vain();
        return 0;
    }
    return 1;
}

template <class T, class Values>
void wait_until_all(const volatile T* variables, std::size_t n, const int* status, int comparison,
                    Values values) {
    for (std::size_t i = 0; i < n; ++i)
        if (counts(status, i)) wait_until(variables + i, comparison, values[i]);
}

// Where the next search among several variables begins, so that none is passed over for long.
std::size_t turn();

// SIZE_MAX: none. `empty` says whether there was nothing to check.
template <class T, class Values>
std::size_t find_any(const volatile T* variables, std::size_t n, const int* status, int comparison,
                     Values values, bool& empty) {
    empty = true;
    const std::size_t first = n == 0 ? 0 : turn() % n;
    for (std::size_t k = 0; k < n; ++k) {
        const std::size_t i = first + k < n ? first + k : first + k - n;
        if (!counts(status, i)) continue;
        empty = false;
        if (holds(load(variables + i), comparison, values[i])) return i;
    }
    return SIZE_MAX;
}

template <class T, class Values>
std::size_t test_any(const volatile T* variables, std::size_t n, const int* status, int comparison,
                     Values values) {
    bool empty;
    const std::size_t found = find_any(variables, n, status, comparison, values, empty);
    if (found == SIZE_MAX) polled_in_vain();
    return found;
}

template <class T, class Values>
std::size_t wait_until_any(const volatile T* variables, std::size_t n, const int* status, int comparison,
                           Values values) {
    bool empty = false;
    std::size_t found = SIZE_MAX;
    wait_for([&] {
        found = find_any(variables, n, status, comparison, values, empty);
        return found != SIZE_MAX || empty;
    });
    return found;
}

template <class T, class Values>
std::size_t find_some(const volatile T* variables, std::size_t n, std::size_t* indices, const int* status,
                      int comparison, Values values, bool& empty) {
    std::size_t found = 0;
    empty = true;
    for (std::size_t i = 0; i < n; ++i) {
        if (!counts(status, i)) continue;
        empty = false;
        if (holds(load(variables + i), comparison, values[i])) indices[found++] = i;
    }
    return found;
}

template <class T, class Values>
std::size_t test_some(const volatile T* variables, std::size_t n, std::size_t* indices, const int* status,
                      int comparison, Values values) {
    bool empty;
    const std::size_t found = find_some(variables, n, indices, status, comparison, values, empty);
    if (found == 0) polled_in_vain();
    return found;
}

template <class T, class Values>
std::size_t wait_until_some(const volatile T* variables, std::size_t n, std::size_t* indices,
                            const int* status, int comparison, Values values) {
    bool empty = false;
    std::size_t found = 0;
    wait_for([&] {
        found = find_some(variables, n, indices, status, comparison, values, empty);
        return found > 0 || empty;
    });
    return found;
}

}  // namespace offpath::shmem
