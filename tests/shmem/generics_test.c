/* The type-generic names of C11, and the old names, each with a value that only the right type can hold. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

static int wrong;
#define SAME(got, wanted)                                                                   \
    do {                                                                                    \
        if (!((got) == (wanted))) {                                                         \
            fprintf(stderr, "%s:%d: PE %d: %s\n", __FILE__, __LINE__, shmem_my_pe(), #got); \
            wrong = 1;                                                                      \
        }                                                                                   \
    } while (0)

static int to;

#define MOVES(TYPE, VALUE)                                                           \
    do {                                                                             \
        static TYPE at[6];                                                           \
        const TYPE value[3] = {(TYPE)(VALUE), (TYPE)(VALUE + 1), (TYPE)(VALUE + 2)}; \
        TYPE got[3];                                                                 \
        shmem_barrier_all();                                                         \
        shmem_p(&at[0], value[0], to);                                               \
        shmem_p(ctx, &at[1], value[1], to);                                          \
        shmem_put(&at[2], &value[2], 1, to);                                         \
        shmem_put_nbi(ctx, &at[3], value, 3, to);                                    \
        shmem_ctx_quiet(ctx);                                                        \
        shmem_barrier_all();                                                         \
        SAME(at[0], value[0]);                                                       \
        SAME(at[1], value[1]);                                                       \
        SAME(at[2], value[2]);                                                       \
        SAME(at[5], value[2]);                                                       \
        SAME(shmem_g((const TYPE*)&at[1], to), value[1]);                            \
        SAME(shmem_g(ctx, &at[5], to), value[2]);                                    \
        shmem_get(ctx, got, at, 3, to);                                              \
        SAME(got[2], value[2]);                                                      \
        shmem_iget(got, at, 2, 3, 2, to);                                            \
        SAME(got[2], value[0]);                                                      \
        shmem_barrier_all();                                                         \
        shmem_iput(ctx, at, value, 5, 2, 2, to);                                     \
        shmem_barrier_all();                                                         \
        SAME(at[5], value[2]);                                                       \
        static TYPE whole[64];                                                       \
        SAME(shmem_fcollect(SHMEM_TEAM_WORLD, whole, at, 1), 0);                     \
        SAME(whole[shmem_n_pes() - 1], value[0]);                                    \
        SAME(shmem_sum_reduce(SHMEM_TEAM_WORLD, whole, at, 1), 0);                   \
        SAME(whole[0], (TYPE)(value[0] * shmem_n_pes()));                            \
    } while (0)

#define ATOMICS(TYPE, VALUE)                                                                     \
    do {                                                                                         \
        static TYPE at;                                                                          \
        TYPE fetched = 0;                                                                        \
        shmem_barrier_all();                                                                     \
        shmem_atomic_set(&at, (TYPE)(VALUE), to);                                                \
        shmem_barrier_all();                                                                     \
        SAME(shmem_atomic_fetch(&at, to), (TYPE)(VALUE));                                        \
        SAME(shmem_atomic_fetch_add(ctx, &at, 2, to), (TYPE)(VALUE));                            \
        SAME(shmem_atomic_compare_swap(&at, (TYPE)(VALUE + 2), (TYPE)7, to), (TYPE)(VALUE + 2)); \
        shmem_atomic_inc(ctx, &at, to);                                                          \
        shmem_atomic_fetch_inc_nbi(&fetched, &at, to);                                           \
        shmem_quiet();                                                                           \
        shmem_ctx_quiet(ctx);                                                                    \
        shmem_barrier_all();                                                                     \
        SAME(at, (TYPE)9);                                                                       \
        SAME(shmem_test(&at, SHMEM_CMP_EQ, (TYPE)9), 1);                                         \
        shmem_wait_until(&at, SHMEM_CMP_GE, (TYPE)9);                                            \
    } while (0)

int main(void) {
    shmem_ctx_t ctx;
    shmem_init();
    if (shmem_ctx_create(0, &ctx) != 0) return 1;
    to = (shmem_my_pe() + 1) % shmem_n_pes();
    MOVES(float, 1.5f);
    MOVES(double, 1e10 + 0.5);
    MOVES(long double, 9007199254740993.0L);
    MOVES(char, 3);
    MOVES(signed char, -3);
    MOVES(short, -300);
    MOVES(int, -70000);
    MOVES(long, -5000000000);
    MOVES(long long, 6000000000);
    MOVES(unsigned char, 200);
    MOVES(unsigned short, 60000);
    MOVES(unsigned, 4000000000u);
    MOVES(unsigned long, 18000000000000000000ul);
    MOVES(unsigned long long, 17000000000000000000ull);
    ATOMICS(int, -70000);
    ATOMICS(long, -5000000000);
    ATOMICS(long long, 6000000000);
    ATOMICS(unsigned, 4000000000u);
    ATOMICS(unsigned long, 18000000000000000000ul);
    ATOMICS(unsigned long long, 17000000000000000000ull);

    static double d;
    shmem_barrier_all();
    shmem_set(&d, 2.25, to);
    shmem_barrier_all();
    SAME(shmem_fetch(&d, to), 2.25);
    shmem_barrier_all();
    SAME(shmem_atomic_swap(&d, 3.5, shmem_my_pe()), 2.25);
    static long l;
    SAME(shmem_fadd(&l, 4, shmem_my_pe()), 0);
    shmem_add(&l, 3, shmem_my_pe());
    SAME(shmem_long_finc(&l, shmem_my_pe()), 7);
    SAME(shmem_cswap(&l, 8, 5, shmem_my_pe()), 8);
    SAME(shmem_swap(&l, 1, shmem_my_pe()), 5);
    static uint32_t u = 12;
    SAME(shmem_atomic_fetch_xor(&u, 5u, shmem_my_pe()), 12u);
    shmem_atomic_or(ctx, &u, 2u, shmem_my_pe());
    shmem_ctx_quiet(ctx);
    SAME(shmem_atomic_fetch(&u, shmem_my_pe()), 11u);
    static long sync[SHMEM_SYNC_SIZE];
    SAME(shmem_sync(SHMEM_TEAM_WORLD), 0);
    shmem_sync(0, 0, shmem_n_pes(), sync);
    SAME(_my_pe(), shmem_my_pe());
    SAME(_num_pes(), shmem_n_pes());

    static int mine, all;
    mine = wrong;
    shmem_int_max_reduce(SHMEM_TEAM_WORLD, &all, &mine, 1);
    shmem_ctx_destroy(ctx);
    shmem_finalize();
    return all != 0 || wrong != 0;
}
