// attach_again_test VICTIM [DELAY_US | STEP]: the daemon of a node dies by SIGKILL, or with DIES_BY=stop it
// is stopped by SIGSTOP, while the PEs of two nodes exchange data. The job goes on with its successor.
// Nothing is lost, and nothing happens twice. VICTIM: the PE whose daemon dies; "each": those of the first
// and the last PE, one after the other; "none": something else may end daemons. The daemon dies at a moment
// in the middle of the rounds, or in a step of shmem_init: before the PE makes the window, or before it has
// everything (marks), or when only other PEs may lack something (watch).
#include "check.h"

#include "kill_daemon.h"

#include <dlfcn.h>
#include <offpath/loss.h>

#include <string>
#include <thread>
#include <vector>

namespace {

constexpr long rounds = 160;
constexpr std::size_t block = 3000, large = 40000;

// The words that the next PE gets from this one. It takes a flag back when it has seen it, so a put that
// happens twice is noticed.
struct Box {
    long flag, small, seen;
    long data[block];
    long big[large];
    std::uint64_t signal;
};

struct Symmetric {
    Box box;
    long counter, tickets, taken[rounds + 1];
    long sums[4], results[4];
};

Symmetric* all = nullptr;
int me = 0, pes = 0, next = 0, before = 0;

long value(int pe, long round, std::size_t i) {
    return pe * 1'000'000'000L + round * 1'000'000L + static_cast<long>(i);
}

void pass_on_large(long round) {
    static std::vector<long> big(large);
    for (std::size_t i = 0; i < large; ++i)
        big[i] = value(me, round, i);
    shmem_putmem_signal_nbi(all->box.big, big.data(), large * sizeof(long), &all->box.signal, 1,
                            SHMEM_SIGNAL_ADD, next);
    shmem_uint64_wait_until(&all->box.signal, SHMEM_CMP_EQ, static_cast<std::uint64_t>(round / 8));
    long wrong = 0;
    for (std::size_t i = 0; i < large; ++i)
        wrong += all->box.big[i] != value(before, round, i);
    SAME(wrong, 0L);
    shmem_quiet();
}

// Puts of all sizes, each with a flag behind it, which the receiver takes back.
void pass_on(long round) {
    static std::vector<long> out(block);
    for (std::size_t i = 0; i < block; ++i)
        out[i] = value(me, round, i);
    shmem_long_put(all->box.data, out.data(), block, next);
    // The program may use its memory again.
    for (long& one : out)
        one = -1;
    shmem_fence();
    shmem_long_p(&all->box.flag, round, next);
    shmem_long_wait_until(&all->box.flag, SHMEM_CMP_EQ, round);
    long wrong = 0;
    for (std::size_t i = 0; i < block; ++i)
        wrong += all->box.data[i] != value(before, round, i);
    SAME(wrong, 0L);
    // Whoever writes again what was written before is seen here.
    all->box.flag = 0;
    all->box.data[0] = 0;
    if (round % 8 == 0) pass_on_large(round);
    shmem_long_p(&all->box.seen, round, before);
    shmem_long_wait_until(&all->box.seen, SHMEM_CMP_EQ, round);
}

// Every round each PE draws a ticket of its own, and adds to a counter.
void count(long round) {
    const long ticket = shmem_long_atomic_fetch_inc(&all->tickets, 0);
    shmem_long_atomic_inc(&all->counter, (me + static_cast<int>(round)) % pes);
    if (ticket >= 0 && ticket <= rounds * pes) shmem_long_atomic_inc(&all->taken[ticket / pes], 0);
    long got = -1;
    shmem_long_get(&got, &all->box.small, 1, next);
    SAME(got >= 0, true);
}

void meet(long round) {
    shmem_barrier_all();
    for (int i = 0; i < 4; ++i)
        all->sums[i] = me + round + i;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, all->results, all->sums, 4);
    for (int i = 0; i < 4; ++i)
        SAME(all->results[i], pes * (round + i) + pes * (pes - 1) / 2);
}

void kill_own_daemon() {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    pid_t pid = 0;
    std::ifstream(std::string(std::getenv("OFFPATH_DIR")) + "/" + host + ".pid") >> pid;
    const char* const by = std::getenv("DIES_BY");
    if (pid > 1) kill(pid, by != nullptr && std::string(by) == "stop" ? SIGSTOP : SIGKILL);
}

std::string dies_in_step;

void die_in(const char* step) {
    if (dies_in_step != step) return;
    dies_in_step.clear();
    kill_own_daemon();
}

template <typename Function>
Function* real(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// These take the places of the client's own.
extern "C" {

__attribute__((visibility("default"))) offpath_status_t offpath_window_create_dynamic(
    offpath_team_h team, offpath_window_h* window) {
    die_in("window");
    return real<decltype(offpath_window_create_dynamic)>("offpath_window_create_dynamic")(team, window);
}

__attribute__((visibility("default"))) offpath_status_t offpath_window_keep_marks(offpath_window_h window,
                                                                                  std::uint64_t* words) {
    die_in("marks");
    return real<decltype(offpath_window_keep_marks)>("offpath_window_keep_marks")(window, words);
}

__attribute__((visibility("default"))) offpath_status_t offpath_recv_offload(
    offpath_team_h team, void* buffer, std::uint64_t bytes, std::uint32_t source, std::uint32_t tag,
    offpath_request_h* request) {
    die_in("watch");
    return real<decltype(offpath_recv_offload)>("offpath_recv_offload")(team, buffer, bytes, source, tag,
                                                                        request);
}

}  // extern "C"

int main(int argc, char** argv) {
    const std::string victim = argc > 1 ? argv[1] : "0", when = argc > 2 ? argv[2] : "3000";
    const bool in_start = when.find_first_not_of("0123456789") != std::string::npos;
    const char* const rank = std::getenv("PMIX_RANK");
    if (in_start && rank != nullptr && victim == rank) dies_in_step = when;
    shmem_init();
    SAME(dies_in_step.empty(), true);
    me = shmem_my_pe();
    pes = shmem_n_pes();
    next = (me + 1) % pes;
    before = (me + pes - 1) % pes;
    const long delay_us = in_start ? 0 : std::stol(when);
    const bool first = victim == "each" ? me == 0 : victim != "none" && !in_start && me == std::stoi(victim);
    const bool last = victim == "each" && me == pes - 1;
    all = static_cast<Symmetric*>(shmem_calloc(1, sizeof(Symmetric)));
    std::vector<std::thread> killers;
    for (long round = 1; round <= rounds; ++round) {
        if ((first && round == rounds / 4) || (last && round == rounds / 2))
            killers.emplace_back([&] {
                usleep(static_cast<useconds_t>(delay_us));
                kill_own_daemon();
            });
        pass_on(round);
        count(round);
        if (round % 4 == 0) meet(round);
    }
    shmem_barrier_all();
    long counted = 0;
    for (int pe = 0; pe < pes; ++pe)
        counted += shmem_long_g(&all->counter, pe);
    SAME(counted, rounds * pes);
    if (me == 0) {
        SAME(all->tickets, rounds * pes);
        for (long ticket = 0; ticket < rounds; ++ticket)
            SAME(all->taken[ticket], static_cast<long>(pes));
    }
    for (std::thread& killer : killers)
        killer.join();
    return check::verdict();
}
