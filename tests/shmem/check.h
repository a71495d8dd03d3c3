// Checks for the OpenSHMEM programs. Each PE counts its errors and prints the first few. verdict() ends the
// program with 1 on all PEs if any PE found an error.
#pragma once

#include <shmem.h>

#include <cstdio>
#include <cstdlib>
#include <type_traits>

namespace check {

inline int wrong = 0;

inline void report(const char* file, int line, const char* what, long got, long wanted) {
    if (++wrong <= 10)
        std::fprintf(stderr, "%s:%d: PE %d of %d: %s: got %ld, wanted %ld\n", file, line, shmem_my_pe(),
                     shmem_n_pes(), what, got, wanted);
}

inline int verdict() {
    static int mine, all;
    mine = wrong;
    shmem_int_max_reduce(SHMEM_TEAM_WORLD, &all, &mine, 1);
    shmem_finalize();
    // The reduction itself may be wrong.
    return all != 0 || wrong != 0 ? 1 : 0;
}

}  // namespace check

#define SAME(got, wanted)                                                                                 \
    do {                                                                                                  \
        const auto got_ = (got);                                                                          \
        const auto wanted_ = static_cast<std::remove_const_t<decltype(got_)>>(wanted);                    \
        if (!(got_ == wanted_))                                                                           \
            check::report(__FILE__, __LINE__, #got, static_cast<long>(got_), static_cast<long>(wanted_)); \
    } while (false)
#define HOLDS(what)                                                  \
    do {                                                             \
        if (!(what)) check::report(__FILE__, __LINE__, #what, 0, 1); \
    } while (false)
