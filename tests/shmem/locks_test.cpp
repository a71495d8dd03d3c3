// Locks: only one PE at a time is inside, the next one sees what was done inside, and several locks at once.

#include "check.h"

namespace {

long locks[2];
long count[2], inside[2];

void exclusive(int which, int rounds, bool by_test) {
    for (int i = 0; i < rounds; ++i) {
        if (by_test)
            while (shmem_test_lock(&locks[which]) != 0) {
            }
        else
            shmem_set_lock(&locks[which]);
        SAME(shmem_long_atomic_fetch_inc(&inside[which], 0), 0);
        // Reads, changes and writes. Only the lock makes this atomic.
        const long now = shmem_long_g(&count[which], 0);
        shmem_long_p(&count[which], now + 1, 0);
        shmem_quiet();
        SAME(shmem_long_atomic_fetch_add(&inside[which], -1, 0), 1);
        shmem_clear_lock(&locks[which]);
    }
}

void totals(int which, long wanted) {
    shmem_barrier_all();
    SAME(shmem_long_g(&count[which], 0), wanted);
    SAME(shmem_long_g(&locks[which], shmem_my_pe()), 0);
    shmem_barrier_all();
}

}  // namespace

int main() {
    shmem_init();
    const int n = shmem_n_pes();
    exclusive(0, 100, false);
    totals(0, 100L * n);
    exclusive(1, 20, true);
    totals(1, 20L * n);
    // The locks are nested, and taken by both calls.
    shmem_set_lock(&locks[0]);
    exclusive(1, 3, shmem_my_pe() % 2 == 0);
    shmem_clear_lock(&locks[0]);
    totals(1, 23L * n);
    // No fence or quiet follows the write: shmem_clear_lock must order it.
    static long last;
    for (int i = 0; i < 30; ++i) {
        shmem_set_lock(&locks[0]);
        const long now = shmem_long_g(&last, n - 1);
        shmem_long_p(&last, now + 1, n - 1);
        shmem_clear_lock(&locks[0]);
    }
    shmem_barrier_all();
    SAME(shmem_long_g(&last, n - 1), 30L * n);
    if (shmem_my_pe() == 0) {
        SAME(shmem_test_lock(&locks[0]), 0);
        shmem_clear_lock(&locks[0]);
    }
    shmem_barrier_all();
    return check::verdict();
}
