/* Says, line by line, whether two nodes move memory without a copy by their devices: messages, an alltoall,
 * puts and gets of memory from offpath_mem_alloc. Each line begins with "pass" or "fail"; the exit code is 1
 * if a line failed. Run it on two nodes: mpirun -n 2 --host a,b build/bin/example-no-copies */
#include "example.h"

#include <stdint.h>
#include <string.h>

enum { MOST = 16 << 20 };

static uint32_t rank;
static int failed;

static void say(int right, const char* what, size_t bytes) {
    if (!right) failed = 1;
    if (bytes > 0)
        printf("%s: rank %u: %s of %zu KiB\n", right ? "pass" : "fail", rank, what, bytes >> 10);
    else
        printf("%s: rank %u: %s\n", right ? "pass" : "fail", rank, what);
    fflush(stdout);
}

static unsigned char letter(uint32_t of, size_t i) {
    return (unsigned char)(of * 101 + i * 7 + (i >> 9));
}
static void fill(unsigned char* memory, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
        memory[i] = letter(rank, i);
}
static int holds(const unsigned char* memory, size_t bytes, uint32_t of, size_t from) {
    for (size_t i = 0; i < bytes; ++i)
        if (memory[i] != letter(of, from + i)) return 0;
    return 1;
}
static void end(offpath_request_h request) {
    CHECK(offpath_request_wait(request));
    CHECK(offpath_request_free(request));
}
static offpath_copies_t copies(offpath_context_h context) {
    offpath_copies_t found;
    CHECK(offpath_context_copies(context, &found));
    return found;
}

int main(void) {
    offpath_context_h context = example_init();
    offpath_team_h world;
    uint32_t size;
    CHECK(offpath_team_world(context, &world));
    CHECK(offpath_team_rank(world, &rank));
    CHECK(offpath_team_size(world, &size));
    if (size != 2) {
        fprintf(stderr, "this program takes 2 ranks, on two nodes; it was started with %u\n", size);
        return 2;
    }
    const uint32_t other = 1 - rank;
    void *out_memory, *in_memory;
    CHECK(offpath_mem_alloc(context, MOST, &out_memory));
    CHECK(offpath_mem_alloc(context, MOST, &in_memory));
    unsigned char *out = out_memory, *in = in_memory;
    offpath_back_end_t back_end;
    offpath_progress_t progress;
    CHECK(offpath_mem_query(context, in, MOST, &back_end, &progress));
    say(back_end == OFFPATH_BACK_END_XGVMI, "the device reaches memory of offpath_mem_alloc by xgvmi", 0);
    if (back_end != OFFPATH_BACK_END_XGVMI) printf("      it is %s\n", offpath_back_end_string(back_end));

    offpath_request_h sent, received;
    for (size_t bytes = 8 << 10; bytes <= MOST; bytes *= 8) {
        fill(out, bytes);
        memset(in, 0, bytes);
        CHECK(offpath_recv_offload(world, in, bytes, other, 0, &received));
        CHECK(offpath_send_offload(world, out, bytes, other, 0, &sent));
        end(received);
        end(sent);
        say(holds(in, bytes, other, 0), "the data of a message", bytes);
    }
    const size_t block = 1 << 20;
    fill(out, 2 * block);
    CHECK(offpath_ialltoall(world, out, in, block, &sent));
    end(sent);
    say(holds(in, block, 0, rank * block) && holds(in + block, block, 1, rank * block),
        "the data of an alltoall, blocks", block);

    offpath_window_h window;
    const offpath_place_t there = {other, 0, NULL, 0};
    CHECK(offpath_window_create(world, in, MOST, &window));
    fill(out, MOST);
    CHECK(offpath_put(window, out, MOST, &there, &sent));
    end(sent);
    CHECK(offpath_window_flush(window, other, NULL));
    CHECK(offpath_ibarrier(world, &sent));
    end(sent);
    say(holds(in, MOST, other, 0), "the data of a put", MOST);
    memset(out, 0, MOST);
    CHECK(offpath_get(window, out, MOST, &there, &sent));
    end(sent);
    say(holds(out, MOST, rank, 0), "the data of a get", MOST);
    CHECK(offpath_ibarrier(world, &sent));
    end(sent);
    CHECK(offpath_window_destroy(window));

    const offpath_copies_t found = copies(context);
    say(found.direct > 0, "payloads went from host to host", 0);
    say(found.once + found.more == 0, "devices copied nothing", 0);
    printf("      rank %u: devices copied %llu bytes not at all, %llu once, %llu more often\n", rank,
           (unsigned long long)found.direct, (unsigned long long)found.once, (unsigned long long)found.more);
    CHECK(offpath_mem_free(context, out_memory));
    CHECK(offpath_mem_free(context, in_memory));
    CHECK(offpath_finalize(context));
    return failed;
}
