// Point-to-point synchronisation: every call of the wait and test families, for every type, on variables that
// the previous PE sets one after the other.

#include <vector>

#include "check.h"
#include "types.h"

namespace {

constexpr std::size_t n = 6;

int next() {
    return (shmem_my_pe() + 1) % shmem_n_pes();
}

template <class T>
struct Variables {
    static T at[n];
};
template <class T>
T Variables<T>::at[n];

template <class T>
void clear() {
    shmem_barrier_all();
    for (T& variable : Variables<T>::at)
        variable = 0;
    shmem_barrier_all();
}

#define FAMILY(NAME, TYPE)                                                                                 \
    void waits_##NAME() {                                                                                  \
        TYPE* const at = Variables<TYPE>::at;                                                              \
        const int to = next();                                                                             \
        const auto set = [&](std::size_t i, TYPE value) { shmem_##NAME##_atomic_set(&at[i], value, to); }; \
        clear<TYPE>();                                                                                     \
        SAME(shmem_##NAME##_test(&at[0], SHMEM_CMP_NE, 0), 0);                                             \
        shmem_barrier_all();                                                                               \
        set(0, 5);                                                                                         \
        shmem_##NAME##_wait_until(&at[0], SHMEM_CMP_EQ, 5);                                                \
        shmem_##NAME##_wait_until(&at[0], SHMEM_CMP_NE, 4);                                                \
        shmem_##NAME##_wait_until(&at[0], SHMEM_CMP_GT, 4);                                                \
        shmem_##NAME##_wait_until(&at[0], SHMEM_CMP_GE, 5);                                                \
        shmem_##NAME##_wait_until(&at[0], SHMEM_CMP_LT, 6);                                                \
        shmem_##NAME##_wait_until(&at[0], SHMEM_CMP_LE, 5);                                                \
        SAME(shmem_##NAME##_test(&at[0], SHMEM_CMP_GT, 5), 0);                                             \
        SAME(shmem_##NAME##_test(&at[0], SHMEM_CMP_LT, 5), 0);                                             \
        SAME(shmem_##NAME##_test(&at[0], SHMEM_CMP_GE, 5), 1);                                             \
                                                                                                           \
        clear<TYPE>();                                                                                     \
        int status[n] = {0, 1, 0, 0, 0, 0};                                                                \
        for (std::size_t i = n; i-- > 0;)                                                                  \
            if (i != 1) set(i, static_cast<TYPE>(i + 1));                                                  \
        shmem_##NAME##_wait_until_all(at, n, status, SHMEM_CMP_GT, 0);                                     \
        for (std::size_t i = 0; i < n; ++i)                                                                \
            SAME(at[i], i == 1 ? 0 : i + 1);                                                               \
        SAME(shmem_##NAME##_test_all(at, n, status, SHMEM_CMP_GT, 0), 1);                                  \
        SAME(shmem_##NAME##_test_all(at, n, nullptr, SHMEM_CMP_GT, 0), 0);                                 \
        TYPE each[n] = {1, 2, 3, 4, 5, 6};                                                                 \
        shmem_##NAME##_wait_until_all_vector(at, n, status, SHMEM_CMP_EQ, each);                           \
        SAME(shmem_##NAME##_test_all_vector(at, n, status, SHMEM_CMP_EQ, each), 1);                        \
        each[3] = 0;                                                                                       \
        SAME(shmem_##NAME##_test_all_vector(at, n, status, SHMEM_CMP_EQ, each), 0);                        \
                                                                                                           \
        clear<TYPE>();                                                                                     \
        for (int& s : status)                                                                              \
            s = 0;                                                                                         \
        SAME(shmem_##NAME##_test_any(at, n, status, SHMEM_CMP_EQ, 9), SIZE_MAX);                           \
        SAME(shmem_##NAME##_test_some(at, n, nullptr, nullptr, SHMEM_CMP_EQ, 9), 0);                       \
        shmem_barrier_all();                                                                               \
        for (std::size_t k = 0; k < n; ++k) {                                                              \
            set((k * 5 + 2) % n, 9);                                                                       \
            const std::size_t i = shmem_##NAME##_wait_until_any(at, n, status, SHMEM_CMP_EQ, 9);           \
            HOLDS(i < n && status[i] == 0 && at[i] == 9);                                                  \
            SAME(shmem_##NAME##_test_any(at, n, status, SHMEM_CMP_EQ, 9) < n, true);                       \
            if (i < n) status[i] = 1;                                                                      \
        }                                                                                                  \
        SAME(shmem_##NAME##_wait_until_any(at, n, status, SHMEM_CMP_EQ, 9), SIZE_MAX);                     \
        SAME(shmem_##NAME##_wait_until_any(at, 0, nullptr, SHMEM_CMP_EQ, 9), SIZE_MAX);                    \
        SAME(shmem_##NAME##_test_any(at, n, status, SHMEM_CMP_EQ, 9), SIZE_MAX);                           \
        /* Repeated calls return every index in the end. */                                                \
        bool seen[n] = {};                                                                                 \
        for (std::size_t k = 0; k < 2 * n; ++k)                                                            \
            seen[shmem_##NAME##_wait_until_any(at, n, nullptr, SHMEM_CMP_EQ, 9)] = true;                   \
        for (const bool s : seen)                                                                          \
            HOLDS(s);                                                                                      \
                                                                                                           \
        clear<TYPE>();                                                                                     \
        TYPE wanted[n] = {3, 4, 5, 6, 7, 8};                                                               \
        std::size_t indices[n], done = 0;                                                                  \
        for (int& s : status)                                                                              \
            s = 0;                                                                                         \
        for (std::size_t i = 0; i < n; ++i)                                                                \
            set(i, wanted[i]);                                                                             \
        while (done < n) {                                                                                 \
            const std::size_t got =                                                                        \
                done % 2 == 0                                                                              \
                    ? shmem_##NAME##_wait_until_some_vector(at, n, indices, status, SHMEM_CMP_EQ, wanted)  \
                    : shmem_##NAME##_wait_until_some(at, n, indices, status, SHMEM_CMP_GE, 3);             \
            HOLDS(got > 0 && got <= n - done);                                                             \
            for (std::size_t k = 0; k < got; ++k) {                                                        \
                HOLDS(indices[k] < n && status[indices[k]] == 0 && at[indices[k]] == wanted[indices[k]]);  \
                status[indices[k]] = 1;                                                                    \
            }                                                                                              \
            done += got;                                                                                   \
        }                                                                                                  \
        SAME(shmem_##NAME##_wait_until_some(at, n, indices, status, SHMEM_CMP_GE, 3), 0);                  \
        SAME(shmem_##NAME##_test_some(at, n, indices, nullptr, SHMEM_CMP_GT, 5), 3);                       \
        SAME(indices[0], 3);                                                                               \
        wanted[4] = 1;                                                                                     \
        SAME(shmem_##NAME##_test_some_vector(at, n, indices, nullptr, SHMEM_CMP_EQ, wanted), 5);           \
        SAME(indices[4], 5);                                                                               \
        SAME(shmem_##NAME##_test_any_vector(at + 4, 1, nullptr, SHMEM_CMP_EQ, wanted + 4), SIZE_MAX);      \
        SAME(shmem_##NAME##_wait_until_any_vector(at + 3, 2, nullptr, SHMEM_CMP_EQ, wanted + 3), 0);       \
    }
AMO_TYPES(FAMILY)

void old_waits() {
    static short s;
    static unsigned short us;
    static long l;
    const int to = next();
    shmem_barrier_all();
    shmem_short_p(&s, 3, to);
    shmem_short_wait(&s, 0);
    SAME(s, 3);
    shmem_short_wait_until(&s, SHMEM_CMP_EQ, 3);
    SAME(shmem_short_test(&s, SHMEM_CMP_LT, 3), 0);
    shmem_ushort_p(&us, 4, to);
    shmem_ushort_wait_until(&us, SHMEM_CMP_GT, 3);
    SAME(us, 4);
    shmem_long_p(&l, -5, to);
    shmem_wait(&l, 0);
    shmem_wait_until(&l, SHMEM_CMP_LT, 0);
    shmem_long_wait(&l, 0);
    SAME(l, -5);
    shmem_barrier_all();
}

void signals() {
    static std::uint64_t signal;
    static long data[1000];
    const int to = next();
    std::vector<long> from(1000);
    shmem_barrier_all();
    for (int round = 1; round <= 20; ++round) {
        for (std::size_t i = 0; i < from.size(); ++i)
            from[i] = static_cast<long>(i) + round;
        if (round % 2 == 0)
            shmem_long_put_signal(data, from.data(), from.size(), &signal, 1, SHMEM_SIGNAL_ADD, to);
        else
            shmem_long_put_signal_nbi(data, from.data(), from.size(), &signal,
                                      static_cast<std::uint64_t>(round), SHMEM_SIGNAL_SET, to);
        SAME(shmem_signal_wait_until(&signal, SHMEM_CMP_EQ, static_cast<std::uint64_t>(round)), round);
        SAME(shmem_signal_fetch(&signal), round);
        for (std::size_t i = 0; i < from.size(); ++i)
            if (data[i] != from[i]) {
                SAME(data[i], from[i]);
                break;
            }
        shmem_barrier_all();
    }
}

}  // namespace

int main() {
    shmem_init();
#define RUN(NAME, TYPE) waits_##NAME();
    AMO_TYPES(RUN)
    old_waits();
    signals();
    return check::verdict();
}
