// errors_test WHAT: does one wrong thing on PE 1 (on PE 0 if there is one PE), which must end the job with a
// message; the other PEs wait for ever. `exit CODE`: the same with shmem_global_exit. `malloc`, `align`,
// `calloc`: all PEs ask for memory that they cannot get. `killed_...`: the last PE dies while the others wait
// for it in this way.
#include <shmem.h>

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

long word;
long* heap;

void do_wrong(const std::string& what) {
    long local = 0;
    const int pes = shmem_n_pes();
    if (what == "pe") shmem_long_put(&word, &local, 1, pes);
    if (what == "negative_pe") shmem_long_g(&word, -1);
    if (what == "amo_pe") shmem_long_atomic_inc(&word, pes);
    if (what == "address") shmem_long_p(&local, 5, 0);
    if (what == "heap_end") shmem_putmem(heap, &word, std::size_t{1} << 40, 0);
    if (what == "amo_address") shmem_long_atomic_add(&local, 5, 0);
    if (what == "alignment")
        shmem_long_atomic_inc(reinterpret_cast<long*>(reinterpret_cast<char*>(heap) + 3), 0);
    if (what == "free") shmem_free(heap + 1);
    if (what == "stride") shmem_long_iput(heap, &local, 0, 1, 2, 0);
    if (what == "signal")
        shmem_putmem_signal(heap, &local, 8, reinterpret_cast<std::uint64_t*>(&local), 1, SHMEM_SIGNAL_SET,
                            0);
    if (what == "signal_operation") {
        static std::uint64_t signal;
        shmem_putmem_signal(heap, &word, 8, &signal, 1, 77, 0);
    }
    if (what == "own") shmem_long_p(heap - 8, 1, 0);
    if (what == "own_get") shmem_getmem(&local, reinterpret_cast<char*>(heap) - (1 << 20), 8, 0);
    if (what == "own_signal")
        shmem_putmem_signal(heap, &word, 8, reinterpret_cast<std::uint64_t*>(heap) - 8, 1, SHMEM_SIGNAL_SET,
                            0);
    if (what.starts_with("destroyed")) {
        shmem_ctx_t context = SHMEM_CTX_INVALID;
        if (shmem_ctx_create(0, &context) != 0) std::abort();
        shmem_ctx_long_p(context, heap, 1, 0);
        shmem_ctx_destroy(context);
        if (what == "destroyed_put") shmem_ctx_long_p(context, heap, 1, 0);
        if (what == "destroyed_quiet") shmem_ctx_quiet(context);
        if (what == "destroyed_twice") shmem_ctx_destroy(context);
    }
    if (what == "init") shmem_init();
    if (what == "block") shmem_long_put(heap + 99, heap, 2, 0);
    if (what == "gap") shmem_long_p(heap + 1000000, 1, 0);
    if (what == "wait_local") shmem_long_wait_until(&local, SHMEM_CMP_EQ, 5);
    if (what == "null") shmem_putmem(heap, nullptr, 8, 0);
    if (what == "device") {
        // The daemon that was started for this job. The only pid file in the directory names it.
        for (const auto& file : std::filesystem::directory_iterator(std::getenv("OFFPATH_DIR"))) {
            if (file.path().extension() != ".pid") continue;
            pid_t pid = 0;
            std::ifstream(file.path()) >> pid;
            if (pid > 0) kill(pid, SIGKILL);
        }
        return;
    }
    if (what.starts_with("killed")) raise(SIGKILL);
    std::fprintf(stderr, "%s was not noticed\n", what.c_str());
    std::_Exit(0);
}

// Never ends if the loss of the last PE is not detected.
void wait_for_the_dead(const std::string& what) {
    static long lock;
    if (what == "killed_barrier") shmem_barrier_all();
    if (what == "killed_test") {
        while (shmem_long_test(&word, SHMEM_CMP_EQ, 77) == 0) {
        }
    }
    if (what == "killed_lock") {
        shmem_set_lock(&lock);
        shmem_long_wait_until(&word, SHMEM_CMP_EQ, 77);
    }
    shmem_long_wait_until(&word, SHMEM_CMP_EQ, 77);
}

// Every PE asks for the same amount and gets nothing.
void ask_too_much(const std::string& what) {
    void* got = nullptr;
    if (what == "malloc") got = shmem_malloc(std::size_t{1} << 45);
    if (what == "align") got = shmem_align(3, 8);
    if (what == "calloc") got = shmem_calloc(std::size_t{1} << 40, std::size_t{1} << 40);
    const bool as_it_should = got == nullptr;
    shmem_finalize();
    std::exit(as_it_should ? 5 : 0);
}

}  // namespace

int main(int, char** arguments) {
    const std::string what = arguments[1];
    if (what == "before") shmem_long_p(&word, 1, 0);
    if (what == "malloc_before") shmem_malloc(8);
    if (what == "n_pes_before") return shmem_n_pes();
    if (what == "my_pe_before") return shmem_my_pe();
    shmem_init();
    if (what == "after") {
        shmem_finalize();
        shmem_long_p(&word, 1, 0);
    }
    if (what == "quiet_after") {
        shmem_finalize();
        shmem_quiet();
    }
    heap = static_cast<long*>(shmem_malloc(100 * sizeof(long)));
    const bool guilty = shmem_my_pe() == shmem_n_pes() - 1;
    if (guilty && what == "exit") shmem_global_exit(std::atoi(arguments[2]));
    if (guilty && what == "return") return 9;
    if (guilty && what == "crash") std::abort();
    if (what == "malloc" || what == "align" || what == "calloc") ask_too_much(what);
    if (guilty) do_wrong(what);
    wait_for_the_dead(what);
    return 0;
}
