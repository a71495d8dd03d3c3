// The symmetric heap: the same offsets on every PE, contents that survive, and null if there is no room.
#include "check.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace {

std::uint64_t static_words[3] = {1, 2, 3};

// Every PE gets the same offset from the first allocation.
void same_everywhere(const char* base, const void* memory) {
    static long mine;
    mine = static_cast<const char*>(memory) - base;
    shmem_barrier_all();
    for (int pe = 0; pe < shmem_n_pes(); ++pe)
        SAME(shmem_long_g(&mine, pe), mine);
    shmem_barrier_all();
}

// A forked child has copies of its own, of the heap and of static data.
void childs_own(unsigned char* block) {
    int go[2];
    HOLDS(pipe(go) == 0);
    block[7] = 70;
    static_words[1] = 71;
    const pid_t child = fork();
    if (child == 0) {
        char word = 0;
        const bool told = read(go[0], &word, 1) == 1;
        const bool as_before = block[7] == 70 && static_words[1] == 71;
        block[7] = 80;
        static_words[1] = 81;
        _exit(told && as_before ? 0 : 1);
    }
    block[7] = 90;
    static_words[1] = 91;
    HOLDS(write(go[1], "g", 1) == 1);
    int status = 1;
    HOLDS(waitpid(child, &status, 0) == child);
    SAME(status, 0);
    SAME(block[7], 90);
    SAME(static_words[1], 91);
    for (const int end : go)
        close(end);
}

}  // namespace

int main() {
    shmem_init();
    const int me = shmem_my_pe(), right = (me + 1) % shmem_n_pes(),
              left = (me + shmem_n_pes() - 1) % shmem_n_pes();
    SAME(static_words[2], 3);
    HOLDS(shmem_malloc(0) == nullptr);
    HOLDS(shmem_calloc(0, 5) == nullptr);
    HOLDS(shmem_calloc(SIZE_MAX / 2, 3) == nullptr);
    HOLDS(shmem_align(3, 64) == nullptr);
    HOLDS(shmem_malloc(std::size_t{1} << 45) == nullptr);
    auto* const first = static_cast<char*>(shmem_malloc(1000));
    std::memset(first, 0x55, 1000);
    void* const aligned = shmem_align(4096, 10);
    SAME(reinterpret_cast<std::uintptr_t>(aligned) % 4096, 0);
    same_everywhere(first, aligned);
    auto* const zeros = static_cast<unsigned char*>(shmem_calloc(300, 7));
    same_everywhere(first, zeros);
    for (int i = 0; i < 2100; ++i)
        SAME(zeros[i], 0);
    shmem_free(aligned);
    shmem_free(nullptr);
    void* const hinted =
        shmem_malloc_with_hints(64, SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE);
    same_everywhere(first, hinted);
    std::memset(zeros, 7, 2100);
    // The block grows, stays and shrinks. Its contents must survive.
    auto* grown = static_cast<unsigned char*>(shmem_realloc(zeros, 500000));
    same_everywhere(first, grown);
    SAME(grown[0], 7);
    SAME(grown[2099], 7);
    grown = static_cast<unsigned char*>(shmem_realloc(grown, 100));
    SAME(grown[99], 7);
    HOLDS(shmem_realloc(grown, 0) == nullptr);
    auto* const again = static_cast<unsigned char*>(shmem_calloc(1, 600000));
    for (int i = 0; i < 600000; i += 999)
        SAME(again[i], 0);
    SAME(first[999], 0x55);

    // The last byte of a large block, on both PEs.
    constexpr std::size_t large = 40 << 20;
    auto* const block = static_cast<unsigned char*>(shmem_malloc(large));
    HOLDS(block != nullptr);
    block[large - 1] = 0;
    shmem_barrier_all();
    shmem_uchar_p(&block[large - 1], static_cast<unsigned char>(me + 1), right);
    shmem_barrier_all();
    SAME(block[large - 1], left + 1);
    for (const void* address : {static_cast<const void*>(block), static_cast<const void*>(static_words)})
        SAME(shmem_addr_accessible(address, right), 1);
    int local = 0;
    SAME(shmem_addr_accessible(&local, right), 0);
    SAME(shmem_addr_accessible(block, shmem_n_pes()), 0);
    SAME(shmem_pe_accessible(right), 1);
    SAME(shmem_pe_accessible(-1), 0);
    HOLDS(shmem_ptr(&local, right) == nullptr);
    HOLDS(shmem_ptr(block, me) == block);
    if (auto* const there = static_cast<unsigned char*>(shmem_ptr(block, right)); there != nullptr)
        there[5] = static_cast<unsigned char>(me + 10);
    else
        shmem_uchar_p(&block[5], static_cast<unsigned char>(me + 10), right);
    shmem_barrier_all();
    SAME(block[5], left + 10);
    childs_own(block);

    // Allocates as many blocks of one size as there are, and frees them in another order. Then all memory is
    // available again.
    std::vector<void*> many;
    for (int i = 0; i < 200; ++i)
        many.push_back(shmem_malloc(static_cast<std::size_t>(1 + i * 37)));
    same_everywhere(first, many.back());
    for (std::size_t i = 0; i < many.size(); ++i)
        shmem_free(many[i * 7 % many.size()]);
    void* const after = shmem_malloc(100000);
    same_everywhere(first, after);
    return check::verdict();
}
