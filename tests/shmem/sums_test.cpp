// The sums of shmemx.h: all PEs add arrays to the same elements at once, of every type, small and large, in
// heap and static memory, with and without contexts. The numbers are whole, so a lost or doubled sum always
// shows.
#include <shmemx.h>

#include <algorithm>

#include <cstdint>
#include <vector>

#include "check.h"

namespace {

constexpr std::size_t most = 100'003;  // more than a message carries
double static_memory[most];

template <typename T>
struct Calls {
    void (*add)(T*, const T*, size_t, int);
    void (*add_nbi)(T*, const T*, size_t, int);
    void (*ctx_add)(shmem_ctx_t, T*, const T*, size_t, int);
    void (*ctx_add_nbi)(shmem_ctx_t, T*, const T*, size_t, int);
};

template <typename T>
void add_all(const Calls<T>& calls, T* memory, std::size_t count) {
    const int me = shmem_my_pe(), pes = shmem_n_pes();
    shmem_ctx_t context = SHMEM_CTX_DEFAULT;
    HOLDS(shmem_ctx_create(0, &context) == 0);
    std::vector<T> mine(count), blocking(count, T{1000});
    for (std::size_t i = 0; i < count; ++i) {
        memory[i] = static_cast<T>(i % 100);
        mine[i] = static_cast<T>(static_cast<std::size_t>(me + 1) * (i % 7));
    }
    shmem_barrier_all();
    for (int distance = 0; distance < pes; ++distance) {
        const int pe = (me + distance) % pes;
        calls.add_nbi(memory, mine.data(), count, pe);
        calls.ctx_add_nbi(context, memory, mine.data(), count, pe);
        calls.add(memory, blocking.data(), count, pe);
        calls.ctx_add(context, memory, blocking.data(), count, pe);
        // The source of the blocking call may be written at once.
        std::fill(blocking.begin(), blocking.end(), T{1000});
    }
    calls.add(memory, mine.data(), 0, (me + 1) % pes);
    shmem_ctx_quiet(context);
    shmem_barrier_all();
    const auto ranks = static_cast<std::size_t>(pes);
    for (std::size_t i = 0; i < count; ++i)
        SAME(memory[i], static_cast<T>(i % 100 + ranks * (ranks + 1) * (i % 7) + 2000 * ranks));
    shmem_barrier_all();
    shmem_ctx_destroy(context);
}

template <typename T>
void add_in_heap(const Calls<T>& calls) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{77}, std::size_t{3000}, most}) {
        auto* memory = static_cast<T*>(shmem_malloc(count * sizeof(T)));
        add_all(calls, memory, count);
        shmem_free(memory);
    }
}

}  // namespace

#define CALLS(NAME)                                                                                 \
    {                                                                                               \
        shmemx_##NAME##_accumulate, shmemx_##NAME##_accumulate_nbi, shmemx_ctx_##NAME##_accumulate, \
            shmemx_ctx_##NAME##_accumulate_nbi                                                      \
    }

int main() {
    shmem_init();
    const Calls<double> doubles = CALLS(double);
    const Calls<float> floats = CALLS(float);
    const Calls<std::int32_t> ints = CALLS(int32);
    const Calls<std::int64_t> longs = CALLS(int64);
    add_in_heap(doubles);
    add_in_heap(floats);
    add_in_heap(ints);
    add_in_heap(longs);
    add_all(doubles, static_memory, most);
    return check::verdict();
}
