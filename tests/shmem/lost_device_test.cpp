// The device of the only node dies with large transfers outstanding. The processor copies them, and all PEs
// go on without the device. The daemon is stopped before they start, so it has done none of them.
#include "check.h"

#include "kill_daemon.h"

#include <vector>

namespace {

constexpr std::size_t longs = 1 << 17;

// Puts to the next PE and gets from the one before, both large enough for the device.
struct Transfers {
    explicit Transfers(long round) : value(1000 * round), sent(longs), got(longs, -1) {
        for (std::size_t i = 0; i < longs; ++i)
            sent[i] = value + me + static_cast<long>(i);
    }
    void start() {
        shmem_long_put_nbi(into, sent.data(), longs, (me + 1) % pes);
        shmem_long_get_nbi(got.data(), constant, longs, (me + pes - 1) % pes);
    }
    void check() const {
        const int before = (me + pes - 1) % pes;
        long wrong_puts = 0, wrong_gets = 0;
        for (std::size_t i = 0; i < longs; ++i) {
            wrong_puts += into[i] != value + before + static_cast<long>(i);
            wrong_gets += got[i] != 7 * before + static_cast<long>(i);
        }
        SAME(wrong_puts, 0L);
        SAME(wrong_gets, 0L);
    }
    static inline int me, pes;
    static inline long *into, *constant;
    long value;
    std::vector<long> sent, got;
};

}  // namespace

int main() {
    shmem_init();
    Transfers::me = shmem_my_pe();
    Transfers::pes = shmem_n_pes();
    Transfers::into = static_cast<long*>(shmem_malloc(longs * sizeof(long)));
    Transfers::constant = static_cast<long*>(shmem_malloc(longs * sizeof(long)));
    for (std::size_t i = 0; i < longs; ++i)
        Transfers::constant[i] = 7 * Transfers::me + static_cast<long>(i);
    shmem_barrier_all();
    for (long round = 0; round < 4; ++round) {
        Transfers transfers(round);
        const bool loses = round == 1;
        if (loses && Transfers::me == 0) check::kill_daemon(SIGSTOP);
        shmem_sync_all();
        transfers.start();
        shmem_sync_all();
        if (loses && Transfers::me == 0) check::kill_daemon(SIGKILL);
        shmem_barrier_all();
        transfers.check();
        shmem_barrier_all();
    }
    static long counter;
    shmem_long_atomic_inc(&counter, 0);
    shmem_barrier_all();
    if (Transfers::me == 0) SAME(counter, static_cast<long>(Transfers::pes));
    return check::verdict();
}
