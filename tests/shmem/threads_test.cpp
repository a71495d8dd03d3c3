// SHMEM_THREAD_MULTIPLE: threads with their own contexts and with the default one, all at once.
#include "check.h"

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int threads = 4, rounds = 60;
constexpr std::size_t words = 10000;
std::uint64_t counters[threads];
std::uint64_t shared_counter;
std::uint64_t signals[threads];

void work(int thread, std::uint64_t* area, int& wrong) {
    shmem_ctx_t context = SHMEM_CTX_DEFAULT;
    if (thread % 2 == 0 && shmem_ctx_create(SHMEM_CTX_PRIVATE, &context) != 0) ++wrong;
    const int me = shmem_my_pe(), pes = shmem_n_pes();
    const int right = (me + 1) % pes, left = (me + pes - 1) % pes;
    std::vector<std::uint64_t> data(words), back(words);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        for (std::size_t i = 0; i < words; ++i)
            data[i] = round * 100 + static_cast<std::uint64_t>(me) + i;
        shmem_ctx_uint64_put_nbi(context, area, data.data(), words, right);
        shmem_ctx_fence(context);
        shmem_ctx_uint64_put_signal_nbi(context, area, data.data(), 1, &signals[thread], round,
                                        SHMEM_SIGNAL_SET, right);
        shmem_ctx_uint64_atomic_inc(context, &counters[thread], right);
        (void)shmem_ctx_uint64_atomic_fetch_inc(context, &shared_counter, 0);
        shmem_signal_wait_until(&signals[thread], SHMEM_CMP_EQ, round);
        for (std::size_t i = 0; i < words; ++i)
            wrong += area[i] != round * 100 + static_cast<std::uint64_t>(left) + i;
        shmem_ctx_quiet(context);
        shmem_ctx_uint64_get_nbi(context, back.data(), area, words, right);
        shmem_ctx_quiet(context);
        for (std::size_t i = 0; i < words; ++i)
            wrong += back[i] != data[i];
        // The previous PE's data may change once both have looked.
        shmem_ctx_uint64_atomic_inc(context, &area[words], left);
        shmem_ctx_quiet(context);
        shmem_uint64_wait_until(&area[words], SHMEM_CMP_GE, round);
        shmem_ctx_uint64_atomic_inc(context, &area[words + 1], right);
        shmem_ctx_quiet(context);
        shmem_uint64_wait_until(&area[words + 1], SHMEM_CMP_GE, round);
    }
    if (thread % 2 == 0) shmem_ctx_destroy(context);
}

}  // namespace

int main() {
    int provided = 0;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    SAME(provided, SHMEM_THREAD_MULTIPLE);
    shmem_query_thread(&provided);
    SAME(provided, SHMEM_THREAD_MULTIPLE);
    auto* const areas = static_cast<std::uint64_t*>(shmem_calloc(threads * (words + 8), 8));
    std::vector<std::thread> running;
    int wrong[threads] = {};
    for (int i = 0; i < threads; ++i)
        running.emplace_back(
            [&, i] { work(i, areas + static_cast<std::size_t>(i) * (words + 8), wrong[i]); });
    for (std::thread& thread : running)
        thread.join();
    shmem_barrier_all();
    for (int i = 0; i < threads; ++i) {
        SAME(wrong[i], 0);
        SAME(counters[i], rounds);
    }
    SAME(shmem_uint64_g(&shared_counter, 0),
         static_cast<std::uint64_t>(threads) * rounds * static_cast<std::uint64_t>(shmem_n_pes()));
    return check::verdict();
}
