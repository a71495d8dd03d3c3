/* Group primitives: a halo exchange on a ring of ranks, recorded once and started in every step. The memory
 * comes from offpath_mem_alloc, so the device reads and writes it in place.
 * Run: mpirun -n 4 build/bin/example-group-primitives */
#include "example.h"

#include <stdint.h>

enum { CELLS = 1 << 16, HALO = 1 << 12, STEPS = 20 };

/* The rank's cells with a halo on each side. */
static int64_t expected(uint32_t rank, int step, size_t i) {
    return (int64_t)rank * 1000000 + step * 1000 + (int64_t)(i % 1000);
}

int main(void) {
    offpath_context_h context = example_init();
    offpath_team_h world;
    uint32_t rank, size;
    CHECK(offpath_team_world(context, &world));
    CHECK(offpath_team_rank(world, &rank));
    CHECK(offpath_team_size(world, &size));
    const uint32_t right = (rank + 1) % size, left = (rank + size - 1) % size;

    void* memory;
    CHECK(offpath_mem_alloc(context, (CELLS + 2 * HALO) * sizeof(int64_t), &memory));
    int64_t* left_halo = memory;
    int64_t* cells = left_halo + HALO;
    int64_t* right_halo = cells + CELLS;
    const size_t bytes = HALO * sizeof(int64_t);

    offpath_group_h halo;
    CHECK(offpath_group_create(world, &halo));
    CHECK(offpath_group_recv(halo, left_halo, bytes, left, 1));
    CHECK(offpath_group_recv(halo, right_halo, bytes, right, 2));
    CHECK(offpath_group_send(halo, cells + CELLS - HALO, bytes, right, 1));
    CHECK(offpath_group_send(halo, cells, bytes, left, 2));
    CHECK(offpath_group_end(halo));

    for (int step = 0; step < STEPS; ++step) {
        for (size_t i = 0; i < CELLS; ++i)
            cells[i] = expected(rank, step, i);
        CHECK(offpath_group_start(halo));
        /* The inner cells could be computed here. */
        CHECK(offpath_group_wait(halo));
        for (size_t i = 0; i < HALO; ++i) {
            if (left_halo[i] != expected(left, step, CELLS - HALO + i) ||
                right_halo[i] != expected(right, step, i)) {
                fprintf(stderr, "rank %u: halo cell %zu of step %d is wrong\n", rank, i, step);
                return 1;
            }
        }
    }
    CHECK(offpath_group_destroy(halo));

    /* The second pattern has an order in it: a token goes around the ring, each rank passing on what it got.
     */
    offpath_group_h token;
    CHECK(offpath_group_create(world, &token));
    if (rank == 0) {
        CHECK(offpath_group_send(token, cells, sizeof(int64_t), right, 7));
        CHECK(offpath_group_recv(token, cells + 1, sizeof(int64_t), left, 7));
    } else {
        CHECK(offpath_group_recv(token, cells, sizeof(int64_t), left, 7));
        CHECK(offpath_group_barrier(token));
        CHECK(offpath_group_send(token, cells, sizeof(int64_t), right, 7));
    }
    CHECK(offpath_group_end(token));
    for (int step = 0; step < STEPS; ++step) {
        cells[0] = rank == 0 ? 4711 + step : -1;
        cells[1] = -1;
        CHECK(offpath_group_start(token));
        CHECK(offpath_group_wait(token));
        if (cells[0] != 4711 + step || (rank == 0 && cells[1] != 4711 + step)) {
            fprintf(stderr, "rank %u: the token of step %d is wrong\n", rank, step);
            return 1;
        }
    }
    CHECK(offpath_group_destroy(token));

    offpath_context_counters_t counters = {.struct_size = sizeof counters};
    CHECK(offpath_context_counters(context, &counters));
    CHECK(offpath_mem_free(context, memory));
    CHECK(offpath_finalize(context));
    if (rank == 0)
        printf("group primitives: %llu starts of %llu schedules on %u ranks, all right\n",
               (unsigned long long)counters.operations, (unsigned long long)counters.schedules_built, size);
    return 0;
}
