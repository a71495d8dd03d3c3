// Atomic operations of all PEs on the same words, of 4 and 8 bytes, in heap and static memory: by PEs of the
// node, the target itself and the proxies at once. Sums, tickets, bits and a lock by compare_swap show
// whether an operation was lost.
#include "check.h"

#include <cstdint>
#include <vector>

namespace {

struct Words {
    std::uint64_t sum, tickets, bits, owner, guarded;
    std::uint32_t small_sum, small_bits;
};
Words static_memory;

void stress(Words* words, int target, int rounds) {
    const int me = shmem_my_pe(), pes = shmem_n_pes();
    *words = {};
    shmem_barrier_all();
    std::vector<std::uint64_t> tickets;
    for (int i = 0; i < rounds; ++i) {
        shmem_uint64_atomic_add(&words->sum, static_cast<std::uint64_t>(me) + 1, target);
        tickets.push_back(shmem_uint64_atomic_fetch_inc(&words->tickets, target));
        shmem_uint32_atomic_inc(&words->small_sum, target);
        // Each PE flips its own bits.
        shmem_uint64_atomic_xor(&words->bits, std::uint64_t{1} << (me % 64), target);
        const std::uint32_t bit = 1u << (me % 32);
        const std::uint32_t before = i % 2 == 0
                                         ? shmem_uint32_atomic_fetch_or(&words->small_bits, bit, target)
                                         : shmem_uint32_atomic_fetch_and(&words->small_bits, ~bit, target);
        if (pes <= 32) SAME((before & bit) != 0, i % 2 != 0);
        // A lock, and a word that only it protects.
        if (i % 8 == 0) {
            const auto name = static_cast<std::uint64_t>(me) + 1;
            while (shmem_uint64_atomic_compare_swap(&words->owner, 0, name, target) != 0) {
            }
            const std::uint64_t value = shmem_uint64_g(&words->guarded, target);
            shmem_uint64_p(&words->guarded, value + 1, target);
            shmem_quiet();
            SAME(shmem_uint64_atomic_swap(&words->owner, 0, target), name);
        }
    }
    for (std::size_t i = 1; i < tickets.size(); ++i)
        HOLDS(tickets[i] > tickets[i - 1]);
    shmem_barrier_all();
    const auto times = static_cast<std::uint64_t>(rounds);
    const auto n = static_cast<std::uint64_t>(pes);
    SAME(shmem_uint64_atomic_fetch(&words->sum, target), times * n * (n + 1) / 2);
    SAME(shmem_uint64_atomic_fetch(&words->tickets, target), times * n);
    SAME(shmem_uint32_atomic_fetch(&words->small_sum, target), times * n);
    if (pes <= 64)
        SAME(shmem_uint64_atomic_fetch(&words->bits, target),
             rounds % 2 == 0 ? 0 : (n == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1));
    SAME(shmem_uint64_g(&words->guarded, target), (times + 7) / 8 * n);
    shmem_barrier_all();
}

}  // namespace

int main() {
    shmem_init();
    auto* const heap = static_cast<Words*>(shmem_malloc(sizeof(Words)));
    for (const int target : {0, shmem_n_pes() - 1}) {
        stress(heap, target, 201);
        stress(&static_memory, target, 201);
    }
    return check::verdict();
}
