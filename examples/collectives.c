/* Non-blocking collectives on the device: started together, waited for later, every byte checked.
 * Run: mpirun -n 4 build/bin/example-collectives */
#include "example.h"

#include <stdint.h>
#include <string.h>

static uint32_t rank, size;

static unsigned char mark(uint32_t from, uint32_t to, size_t i) {
    return (unsigned char)(from * 131 + to * 17 + i * 7 + (i >> 9));
}

static void expect(const char* what, const unsigned char* data, size_t bytes, uint32_t from, uint32_t to) {
    for (size_t i = 0; i < bytes; ++i) {
        if (data[i] != mark(from, to, i)) {
            fprintf(stderr, "rank %u: %s: byte %zu of the block from rank %u is wrong\n", rank, what, i,
                    from);
            exit(1);
        }
    }
}

static void fill(unsigned char* data, size_t bytes, uint32_t from, uint32_t to) {
    for (size_t i = 0; i < bytes; ++i)
        data[i] = mark(from, to, i);
}

static void finish(offpath_request_h request) {
    CHECK(offpath_request_wait(request));
    CHECK(offpath_request_free(request));
}

static void exchange(offpath_context_h context, offpath_team_h team, size_t bytes, int mapped) {
    unsigned char *out, *in, *all, *cast;
    if (mapped) {
        CHECK(offpath_mem_alloc(context, size * bytes, (void**)&out));
        CHECK(offpath_mem_alloc(context, size * bytes, (void**)&in));
    } else {
        out = malloc(size * bytes);
        in = malloc(size * bytes);
    }
    all = malloc(size * bytes);
    cast = malloc(bytes);
    const uint32_t root = size / 2;
    for (int round = 0; round < 3; ++round) {
        for (uint32_t peer = 0; peer < size; ++peer)
            fill(out + peer * bytes, bytes, rank, peer);
        memset(in, 0, size * bytes);
        memset(all, 0, size * bytes);
        fill(all + rank * bytes, bytes, rank, 0);
        if (rank == root) {
            fill(cast, bytes, root, 99);
        } else {
            memset(cast, 0, bytes);
        }
        offpath_request_h requests[4];
        CHECK(offpath_ialltoall(team, out, in, bytes, &requests[0]));
        CHECK(offpath_iallgather(team, OFFPATH_IN_PLACE, all, bytes, &requests[1]));
        CHECK(offpath_ibcast(team, cast, bytes, root, &requests[2]));
        CHECK(offpath_ibarrier(team, &requests[3]));
        for (int i = 0; i < 4; ++i)
            finish(requests[i]);
        for (uint32_t peer = 0; peer < size; ++peer) {
            expect("alltoall", in + peer * bytes, bytes, peer, rank);
            expect("allgather", all + peer * bytes, bytes, peer, 0);
        }
        expect("bcast", cast, bytes, root, 99);

        /* In place: what was received goes back to where it came from. */
        offpath_request_h back;
        CHECK(offpath_ialltoall(team, OFFPATH_IN_PLACE, in, bytes, &back));
        finish(back);
        for (uint32_t peer = 0; peer < size; ++peer)
            expect("alltoall in place", in + peer * bytes, bytes, rank, peer);
    }
    if (mapped) {
        CHECK(offpath_mem_free(context, out));
        CHECK(offpath_mem_free(context, in));
    } else {
        free(out);
        free(in);
    }
    free(all);
    free(cast);
}

/* Rank r sends (r + p) * unit bytes to rank p, so some blocks are empty when unit is 0 and none are equal. */
static void exchange_uneven(offpath_team_h team, size_t unit) {
    size_t* bytes = calloc(size, sizeof *bytes);
    size_t* offsets = calloc(size, sizeof *offsets);
    size_t* places = calloc(size, sizeof *places);
    size_t* blocks = calloc(size, sizeof *blocks);
    size_t total = 0, gathered = 0;
    for (uint32_t peer = 0; peer < size; ++peer) {
        bytes[peer] = (rank + peer) * unit;
        offsets[peer] = total;
        total += bytes[peer];
        blocks[peer] = peer * unit;
        places[peer] = gathered;
        gathered += blocks[peer];
    }
    unsigned char* out = calloc(total + 1, 1);
    unsigned char* in = calloc(total + 1, 1);
    unsigned char* all = calloc(gathered + 1, 1);
    unsigned char* mine = calloc(rank * unit + 1, 1);
    for (uint32_t peer = 0; peer < size; ++peer)
        fill(out + offsets[peer], bytes[peer], rank, peer);
    fill(mine, rank * unit, rank, 3);
    offpath_request_h requests[2];
    CHECK(offpath_ialltoallv(team, out, bytes, offsets, in, bytes, offsets, &requests[0]));
    CHECK(offpath_iallgatherv(team, mine, all, blocks, places, &requests[1]));
    finish(requests[0]);
    finish(requests[1]);
    for (uint32_t peer = 0; peer < size; ++peer) {
        expect("alltoallv", in + offsets[peer], bytes[peer], peer, rank);
        expect("allgatherv", all + places[peer], blocks[peer], peer, 3);
    }
    free(bytes);
    free(offsets);
    free(places);
    free(blocks);
    free(out);
    free(in);
    free(all);
    free(mine);
}

int main(void) {
    offpath_context_h context = example_init();
    offpath_team_h world;
    CHECK(offpath_team_world(context, &world));
    CHECK(offpath_team_rank(world, &rank));
    CHECK(offpath_team_size(world, &size));
    const size_t sizes[] = {1, 1000, 4096, 100000, 1 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        exchange(context, world, sizes[i], 0);
        exchange(context, world, sizes[i], 1);
        exchange_uneven(world, sizes[i] / 3);
    }
    CHECK(offpath_finalize(context));
    if (rank == 0) printf("collectives: %u ranks, all right\n", size);
    return 0;
}
