/* Basic primitives: every rank sends a message around the ring and computes while the proxies match and move
 * it. Run: mpirun -n 4 build/bin/example-basic-primitives */
#include "example.h"

#include <stdint.h>

enum { WORDS = 1 << 18, ROUNDS = 8 };

static uint64_t value(uint32_t rank, uint32_t round, size_t i) {
    return ((uint64_t)rank << 48) ^ ((uint64_t)round << 40) ^ (i * 0x9e3779b97f4a7c15u);
}

int main(void) {
    offpath_context_h context = example_init();
    offpath_team_h world;
    uint32_t rank, size;
    CHECK(offpath_team_world(context, &world));
    CHECK(offpath_team_rank(world, &rank));
    CHECK(offpath_team_size(world, &size));
    const uint32_t right = (rank + 1) % size, left = (rank + size - 1) % size;

    uint64_t* out = malloc(WORDS * sizeof *out);
    uint64_t* in = malloc(WORDS * sizeof *in);
    double work = 0;
    for (uint32_t round = 0; round < ROUNDS; ++round) {
        for (size_t i = 0; i < WORDS; ++i)
            out[i] = value(rank, round, i);

        offpath_request_h sending, receiving;
        CHECK(offpath_recv_offload(world, in, WORDS * sizeof *in, OFFPATH_ANY_SOURCE, round, &receiving));
        CHECK(offpath_send_offload(world, out, WORDS * sizeof *out, right, round, &sending));

        /* The host computes; the message moves on the device. */
        for (int i = 1; i < 1000000; ++i)
            work += 1.0 / i;

        CHECK(offpath_request_wait(receiving));
        CHECK(offpath_request_wait(sending));
        offpath_message_t message;
        CHECK(offpath_request_message(receiving, &message));
        if (message.source != left || message.tag != round || message.bytes != WORDS * sizeof *in) {
            fprintf(stderr, "rank %u: message from %u with tag %u and %zu bytes\n", rank, message.source,
                    message.tag, message.bytes);
            return 1;
        }
        for (size_t i = 0; i < WORDS; ++i) {
            if (in[i] != value(left, round, i)) {
                fprintf(stderr, "rank %u: word %zu of round %u is wrong\n", rank, i, round);
                return 1;
            }
        }
        CHECK(offpath_request_free(receiving));
        CHECK(offpath_request_free(sending));
    }
    free(out);
    free(in);
    CHECK(offpath_finalize(context));
    if (rank == 0)
        printf("basic primitives: %d rounds around %u ranks, all right (%.3f)\n", ROUNDS, size, work);
    return 0;
}
