// Every collective, on several teams and active sets, one after the other without synchronisation in between.
// Each PE computes the expected results itself. All types and operations, and sizes from nothing to data that
// are split over PEs and nodes.

#include <complex>
#include <cstring>
#include <vector>

#include "check.h"
#include "types.h"

// The standard's complex types are those of C.
#pragma GCC diagnostic ignored "-Wpedantic"

namespace {

constexpr std::size_t room = 1 << 20;  // bytes of each buffer
alignas(64) unsigned char sources[2][room], dests[2][room];
constexpr std::size_t sync_count = 64;
long syncs[sync_count][SHMEM_SYNC_SIZE];
unsigned char work[room];
std::size_t next_sync = 0;
unsigned turn = 0;
// Fewer sizes, for calls that take long.
bool few = false;

// The set of PEs that a collective runs on: a team or an active set.
struct Set {
    std::vector<int> pes;  // world numbers
    shmem_team_t team = SHMEM_TEAM_INVALID;
    int start = 0, log_stride = -1;  // -1: no active set

    int size() const { return static_cast<int>(pes.size()); }
    int rank() const {
        for (int i = 0; i < size(); ++i)
            if (pes[static_cast<std::size_t>(i)] == shmem_my_pe()) return i;
        return -1;
    }
};

long* fresh_sync() {
    return syncs[next_sync++ % sync_count];
}

// PEs that were not in the last set have counted fewer calls.
void begin_set() {
    turn = 0;
    next_sync = 0;
}

// The elements that the PE with this world number contributes to call `call`. Every PE computes the same.
constexpr std::size_t period = 5;
struct Values {
    Values(int pe, unsigned call) : start(static_cast<unsigned>(pe) * 7 + call) {}
    long operator[](std::size_t i) const { return static_cast<long>((start + i * 3) % period) + 1; }
    std::size_t start;
};
long value(int pe, std::size_t i, unsigned call) {
    return Values(pe, call)[i];
}

template <class T>
T* source_of(unsigned call) {
    return reinterpret_cast<T*>(sources[call % 2]);
}
template <class T>
T* dest_of(unsigned call) {
    return reinterpret_cast<T*>(dests[call % 2]);
}

// Before a dest is used again, the program must sync. Two buffers take turns, so every second call does it.
void buffers_free(const Set& set) {
    if (++turn % 2 == 0) {
        if (set.team != SHMEM_TEAM_INVALID)
            shmem_team_sync(set.team);
        else
            shmem_sync(set.start, set.log_stride, set.size(), fresh_sync());
    }
}

template <class T>
void fill(const Set&, unsigned call, std::size_t count) {
    T* source = source_of<T>(call);
    const Values mine(shmem_my_pe(), call);
    for (std::size_t i = 0; i < count; ++i)
        source[i] = static_cast<T>(mine[i]);
}

enum class Op { and_, or_, xor_, max, min, sum, prod };

template <class T>
T combine(Op op, T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        const auto x = static_cast<unsigned long long>(a), y = static_cast<unsigned long long>(b);
        switch (op) {
            case Op::and_:
                return static_cast<T>(x & y);
            case Op::or_:
                return static_cast<T>(x | y);
            case Op::xor_:
                return static_cast<T>(x ^ y);
            case Op::sum:
                return static_cast<T>(x + y);
            case Op::prod:
                return static_cast<T>(x * y);
            default:
                break;
        }
    }
    if constexpr (std::is_arithmetic_v<T>) {
        if (op == Op::max) return a < b ? b : a;
        if (op == Op::min) return b < a ? b : a;
    }
    return op == Op::sum ? a + b : a * b;
}

template <class T, class Call>
void reduction(const Set& set, Op op, std::size_t count, bool in_place, Call call) {
    buffers_free(set);
    const unsigned c = turn;
    fill<T>(set, c, count);
    T* source = source_of<T>(c);
    T* dest = in_place ? source : dest_of<T>(c);
    call(dest, source, count);
    // The elements repeat.
    T wanted[period];
    for (std::size_t i = 0; i < period; ++i) {
        wanted[i] = static_cast<T>(value(set.pes[0], i, c));
        for (int k = 1; k < set.size(); ++k)
            wanted[i] =
                combine<T>(op, wanted[i], static_cast<T>(value(set.pes[static_cast<std::size_t>(k)], i, c)));
    }
    for (std::size_t i = 0; i < count; ++i) {
        if (!(dest[i] == wanted[i % period])) {
            check::report(__FILE__, __LINE__, "an element of a reduction", static_cast<long>(i), -1);
            return;
        }
    }
}

std::vector<std::size_t> counts(std::size_t element, bool many) {
    if (few && !many) return {3};
    std::vector<std::size_t> all{1, 2, 100};
    if (many) all.insert(all.end(), {0, 7, 1000, 3000, 20000 / element, 70001 / element, 400000 / element});
    return all;
}

void team_reductions(const Set& set) {
#define CASE(NAME, TYPE, OP, WORD)                                                                         \
    for (const std::size_t n : counts(sizeof(TYPE), sizeof(TYPE) == 8 && Op::WORD != Op::xor_))            \
        reduction<TYPE>(set, Op::WORD, n, n % 2 == 0, [&](TYPE* dest, const TYPE* source, std::size_t k) { \
            SAME(shmem_##NAME##_##OP##_reduce(set.team, dest, source, k), 0);                              \
        });
#define LOGICAL(NAME, TYPE) CASE(NAME, TYPE, and, and_) CASE(NAME, TYPE, or, or_) CASE(NAME, TYPE, xor, xor_)
#define ORDERED(NAME, TYPE)    \
    CASE(NAME, TYPE, max, max) \
    CASE(NAME, TYPE, min, min) CASE(NAME, TYPE, sum, sum) CASE(NAME, TYPE, prod, prod)
    LOGICAL_TYPES(LOGICAL)
    RMA_TYPES(ORDERED)
#undef CASE
#define CASE(NAME, TYPE, OP, WORD)                                                                           \
    for (const std::size_t n : {1, 50, 6000})                                                                \
        reduction<std::complex<TYPE>>(set, Op::WORD, n, false, [&](auto* dest, const auto* source, auto k) { \
            SAME(shmem_##NAME##_##OP##_reduce(set.team, reinterpret_cast<TYPE _Complex*>(dest),              \
                                              reinterpret_cast<const TYPE _Complex*>(source), k),            \
                 0);                                                                                         \
        });
    CASE(complexd, double, sum, sum)
    CASE(complexf, float, sum, sum)
    CASE(complexd, double, prod, prod)
    CASE(complexf, float, prod, prod)
#undef CASE
}

void old_reductions(const Set& set) {
#define CASE(NAME, TYPE, OP, WORD)                                                                     \
    for (const std::size_t n : {1, 33, 9000})                                                          \
        reduction<TYPE>(set, Op::WORD, n, false, [&](TYPE* dest, const TYPE* source, std::size_t k) {  \
            shmem_##NAME##_##OP##_to_all(dest, source, static_cast<int>(k), set.start, set.log_stride, \
                                         set.size(), reinterpret_cast<TYPE*>(work), fresh_sync());     \
        });
    OLD_INTEGERS(LOGICAL)
    OLD_INTEGERS(ORDERED)
    OLD_REALS(ORDERED)
#undef CASE
}

// `wanted` returns the element that belongs at a place of dest.
template <class T, class Wanted>
void expect(const T* dest, std::size_t count, const char* what, Wanted wanted) {
    for (std::size_t i = 0; i < count; ++i) {
        if (dest[i] == static_cast<T>(wanted(i))) continue;
        check::report(__FILE__, __LINE__, what, static_cast<long>(i), wanted(i));
        return;
    }
}

template <class T, class Call>
void broadcast(const Set& set, std::size_t count, int root, bool root_too, Call call) {
    buffers_free(set);
    const unsigned c = turn;
    fill<T>(set, c, count);
    T* dest = dest_of<T>(c);
    std::memset(dest, 0, count * sizeof(T));
    // No PE writes into a dest before the PE that owns it has entered.
    if (set.team != SHMEM_TEAM_INVALID)
        shmem_team_sync(set.team);
    else
        shmem_sync(set.start, set.log_stride, set.size(), fresh_sync());
    call(dest, source_of<T>(c), count, root);
    const bool has = set.rank() != root || root_too;
    const Values roots(set.pes[static_cast<std::size_t>(root)], c);
    expect(dest, count, "an element of a broadcast", [&](std::size_t i) { return has ? roots[i] : 0; });
}

template <class T, class Call>
void gather(const Set& set, std::size_t count, bool even, Call call) {
    buffers_free(set);
    const unsigned c = turn;
    const auto count_of = [&](int rank) {
        return even ? count : count * static_cast<std::size_t>((rank + static_cast<int>(c)) % 3);
    };
    const std::size_t mine = count_of(set.rank());
    fill<T>(set, c, mine);
    call(dest_of<T>(c), source_of<T>(c), mine);
    std::size_t at = 0;
    for (int rank = 0; rank < set.size(); ++rank) {
        const Values theirs(set.pes[static_cast<std::size_t>(rank)], c);
        expect(dest_of<T>(c) + at, count_of(rank), "an element of a collect",
               [&](std::size_t i) { return theirs[i]; });
        at += count_of(rank);
    }
}

template <class T, class Call>
void alltoall(const Set& set, std::size_t count, std::ptrdiff_t to, std::ptrdiff_t from, Call call) {
    buffers_free(set);
    const unsigned c = turn;
    const auto n = static_cast<std::size_t>(set.size());
    fill<T>(set, c, n * count * static_cast<std::size_t>(from));
    call(dest_of<T>(c), source_of<T>(c), count);
    const auto rank = static_cast<std::size_t>(set.rank());
    for (std::size_t peer = 0; peer < n; ++peer)
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t there = (rank * count + i) * static_cast<std::size_t>(from);
            const T wanted = static_cast<T>(value(set.pes[peer], there, c));
            const T got = dest_of<T>(c)[(peer * count + i) * static_cast<std::size_t>(to)];
            if (got == wanted) continue;
            check::report(__FILE__, __LINE__, "an element of an alltoall", static_cast<long>(i), wanted);
            return;
        }
}

void team_moves(const Set& set) {
    int root = 0;
    const auto next_root = [&] { return root++ % set.size(); };
#define CASE(NAME, TYPE)                                                                                     \
    for (const std::size_t n : counts(sizeof(TYPE), sizeof(TYPE) == 4)) {                                    \
        broadcast<TYPE>(set, n, next_root(), true, [&](auto* d, auto* s, auto k, int r) {                    \
            SAME(shmem_##NAME##_broadcast(set.team, d, s, k, r), 0);                                         \
        });                                                                                                  \
        const std::size_t each = n / static_cast<std::size_t>(set.size()) / 2 + 1;                           \
        gather<TYPE>(set, each, true, [&](auto* d, auto* s, auto k) {                                        \
            SAME(shmem_##NAME##_fcollect(set.team, d, s, k), 0);                                             \
        });                                                                                                  \
        gather<TYPE>(set, each, false,                                                                       \
                     [&](auto* d, auto* s, auto k) { SAME(shmem_##NAME##_collect(set.team, d, s, k), 0); }); \
        alltoall<TYPE>(set, each, 1, 1, [&](auto* d, auto* s, auto k) {                                      \
            SAME(shmem_##NAME##_alltoall(set.team, d, s, k), 0);                                             \
        });                                                                                                  \
        alltoall<TYPE>(set, each, 2, 3, [&](auto* d, auto* s, auto k) {                                      \
            SAME(shmem_##NAME##_alltoalls(set.team, d, s, 2, 3, k), 0);                                      \
        });                                                                                                  \
    }
    RMA_TYPES(CASE)
#undef CASE
    using Byte = unsigned char;
    for (const std::size_t n : {1, 4000, 100000}) {
        broadcast<Byte>(set, n, next_root(), true,
                        [&](auto* d, auto* s, auto k, int r) { shmem_broadcastmem(set.team, d, s, k, r); });
        const std::size_t each = n / static_cast<std::size_t>(set.size()) + 1;
        gather<Byte>(set, each, true,
                     [&](auto* d, auto* s, auto k) { shmem_fcollectmem(set.team, d, s, k); });
        gather<Byte>(set, each, false,
                     [&](auto* d, auto* s, auto k) { shmem_collectmem(set.team, d, s, k); });
        alltoall<Byte>(set, each, 1, 1,
                       [&](auto* d, auto* s, auto k) { shmem_alltoallmem(set.team, d, s, k); });
        alltoall<Byte>(set, each, 3, 1,
                       [&](auto* d, auto* s, auto k) { shmem_alltoallsmem(set.team, d, s, 3, 1, k); });
    }
}

void old_moves(const Set& set) {
    const int a = set.start, b = set.log_stride, n = set.size();
    for (const std::size_t count : {1, 900, 30000}) {
        const int root = static_cast<int>(count) % n;
        const std::size_t each = count / static_cast<std::size_t>(n) + 1;
#define CASE(BITS, TYPE)                                                                                     \
    broadcast<TYPE>(set, count, root, false, [&](auto* d, auto* s, auto k, int r) {                          \
        shmem_broadcast##BITS(d, s, k, r, a, b, n, fresh_sync());                                            \
    });                                                                                                      \
    gather<TYPE>(set, each, true,                                                                            \
                 [&](auto* d, auto* s, auto k) { shmem_fcollect##BITS(d, s, k, a, b, n, fresh_sync()); });   \
    gather<TYPE>(set, each, false,                                                                           \
                 [&](auto* d, auto* s, auto k) { shmem_collect##BITS(d, s, k, a, b, n, fresh_sync()); });    \
    alltoall<TYPE>(set, each, 1, 1,                                                                          \
                   [&](auto* d, auto* s, auto k) { shmem_alltoall##BITS(d, s, k, a, b, n, fresh_sync()); }); \
    alltoall<TYPE>(set, each, 1, 2, [&](auto* d, auto* s, auto k) {                                          \
        shmem_alltoalls##BITS(d, s, 1, 2, k, a, b, n, fresh_sync());                                         \
    });
        CASE(32, std::uint32_t)
        CASE(64, std::uint64_t)
#undef CASE
    }
}

// If a sync releases a PE too early, that shows in a counter that all PEs of the set write in turn.
void syncs_hold(const Set& set) {
    static long seen[64];
    const int n = set.size(), me = set.rank();
    for (long round = 1; round <= (few ? 5 : 50); ++round) {
        for (int k = 0; k < n; ++k)
            shmem_long_p(&seen[me], round, set.pes[static_cast<std::size_t>(k)]);
        shmem_quiet();
        if (set.team != SHMEM_TEAM_INVALID)
            shmem_team_sync(set.team);
        else
            shmem_barrier(set.start, set.log_stride, n, syncs[0]);
        for (int k = 0; k < n; ++k)
            HOLDS(seen[k] >= round);
        if (set.team != SHMEM_TEAM_INVALID)
            shmem_team_sync(set.team);
        else
            shmem_sync(set.start, set.log_stride, n, syncs[0]);
    }
    for (int k = 0; k < n; ++k)
        seen[k] = 0;
}

void on_team(shmem_team_t team) {
    if (team == SHMEM_TEAM_INVALID) return;
    begin_set();
    Set set;
    set.team = team;
    for (int i = 0; i < shmem_team_n_pes(team); ++i)
        set.pes.push_back(shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD));
    syncs_hold(set);
    team_moves(set);
    team_reductions(set);
}

void on_active_set(int start, int log_stride, int size) {
    Set set;
    set.start = start;
    set.log_stride = log_stride;
    for (int i = 0; i < size; ++i)
        set.pes.push_back(start + (i << log_stride));
    if (set.rank() < 0) return;
    begin_set();
    syncs_hold(set);
    old_moves(set);
    old_reductions(set);
    for (const auto& sync : syncs)
        for (const long word : sync)
            SAME(word, SHMEM_SYNC_VALUE);
}

}  // namespace

int main(int argc, char** argv) {
    few = argc > 1 && std::strcmp(argv[1], "few") == 0;
    shmem_init();
    const int n = shmem_n_pes();
    for (auto& sync : syncs)
        for (long& word : sync)
            word = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    on_team(SHMEM_TEAM_WORLD);
    on_team(SHMEM_TEAM_SHARED);
    shmem_team_t team;
    SAME(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, n > 1 ? -1 : 1, n, nullptr, 0, &team), 0);
    on_team(team);
    shmem_team_destroy(team);
    SAME(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, nullptr, 0, &team), 0);
    on_team(team);
    if (team != SHMEM_TEAM_INVALID) shmem_team_destroy(team);
    shmem_barrier_all();
    on_active_set(0, 0, n);
    shmem_barrier_all();
    if (n > 1) on_active_set(1, 0, n - 1);
    shmem_barrier_all();
    on_active_set(0, 1, (n + 1) / 2);
    shmem_barrier_all();
    return check::verdict();
}
