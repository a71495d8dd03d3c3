/* For a real MPMD mpirun. split_test HOSTS DEVICES, numbers per node, checks every field and communicator
 * against the command line. split_test --fails TEXT: the split must fail on all ranks, with TEXT in the
 * problem. */
#include <offpath/device_ranks.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int world_rank, world_size;

#define EXPECT(condition)                                                                                  \
    do {                                                                                                   \
        if (!(condition)) {                                                                                \
            fprintf(stderr, "%s:%d: rank %d: not true: %s\n", __FILE__, __LINE__, world_rank, #condition); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                  \
        }                                                                                                  \
    } while (0)

/* The ranks in the world of all members of `comm`. */
static void members(MPI_Comm comm, int* ranks, int* count) {
    MPI_Comm_size(comm, count);
    MPI_Allgather(&world_rank, 1, MPI_INT, ranks, 1, MPI_INT, comm);
}

static void expect_fails(const char* text) {
    offpath_device_ranks_t ranks = {.struct_size = sizeof ranks, .node = 123};
    const offpath_status_t status = offpath_device_ranks_split(MPI_COMM_WORLD, &ranks);
    EXPECT(status != OFFPATH_OK);
    EXPECT(ranks.node == 123);
    int same = (int)status;
    MPI_Bcast(&same, 1, MPI_INT, 0, MPI_COMM_WORLD);
    EXPECT(same == (int)status);
    if (strstr(offpath_device_ranks_problem(), text) == NULL) {
        fprintf(stderr, "rank %d: the problem is said to be: %s\n", world_rank,
                offpath_device_ranks_problem());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    offpath_device_ranks_free(&ranks); /* nothing was made */
}

static void expect_bad_arguments(void) {
    offpath_device_ranks_t ranks = {.struct_size = sizeof ranks};
    EXPECT(offpath_device_ranks_split(MPI_COMM_WORLD, NULL) == OFFPATH_ERR_INVALID);
    EXPECT(offpath_device_ranks_split(MPI_COMM_NULL, &ranks) == OFFPATH_ERR_INVALID);
    ranks.struct_size = 4;
    EXPECT(offpath_device_ranks_split(MPI_COMM_WORLD, &ranks) == OFFPATH_ERR_INVALID);
    EXPECT(strstr(offpath_device_ranks_problem(), "struct_size") != NULL);
    offpath_device_ranks_free(NULL);
}

/* The messages that the helper is for: each side tells its peers its rank. */
static void exchange_with_peers(const offpath_device_ranks_t* ranks) {
    int* heard = malloc((size_t)ranks->peer_count * sizeof *heard);
    MPI_Request* requests = malloc(2 * (size_t)ranks->peer_count * sizeof *requests);
    for (int i = 0; i < ranks->peer_count; ++i) {
        MPI_Irecv(&heard[i], 1, MPI_INT, ranks->peers[i], 7, MPI_COMM_WORLD, &requests[2 * i]);
        MPI_Isend(&world_rank, 1, MPI_INT, ranks->peers[i], 7, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
    MPI_Waitall(2 * ranks->peer_count, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < ranks->peer_count; ++i)
        EXPECT(heard[i] == ranks->peers[i]);
    free(heard);
    free(requests);
}

static void expect_split(int hosts, int devices) {
    offpath_device_ranks_t ranks = {.struct_size = sizeof ranks};
    EXPECT(offpath_device_ranks_split(MPI_COMM_WORLD, &ranks) == OFFPATH_OK);
    EXPECT(offpath_device_ranks_problem()[0] == '\0');
    EXPECT(ranks.nodes == world_size / (hosts + devices));
    EXPECT(ranks.hosts == ranks.nodes * hosts && ranks.devices == ranks.nodes * devices);
    EXPECT(ranks.node >= 0 && ranks.node < ranks.nodes);
    EXPECT(ranks.node_hosts == hosts && ranks.node_devices == devices);

    int* found = malloc((size_t)world_size * sizeof *found);
    int count = 0, mine = 0;
    members(ranks.kind_comm, found, &count);
    EXPECT(count == (ranks.is_device ? ranks.devices : ranks.hosts));
    int rank_in_kind = -1;
    MPI_Comm_rank(ranks.kind_comm, &rank_in_kind);
    EXPECT(rank_in_kind / (ranks.is_device ? devices : hosts) == ranks.node);

    members(ranks.node_comm, found, &count);
    EXPECT(count == hosts + devices);
    for (int i = 0; i < hosts; ++i) {
        EXPECT(found[i] == ranks.node_host_ranks[i]);
        mine += found[i] == world_rank && !ranks.is_device;
    }
    for (int i = 0; i < devices; ++i) {
        EXPECT(found[hosts + i] == ranks.node_device_ranks[i]);
        mine += found[hosts + i] == world_rank && ranks.is_device;
    }
    EXPECT(mine == 1);
    int node = ranks.node;
    MPI_Bcast(&node, 1, MPI_INT, 0, ranks.node_comm);
    EXPECT(node == ranks.node);

    members(ranks.pair_comm, found, &count);
    const int leads = ranks.is_device == (hosts >= devices);
    EXPECT(ranks.peer_count >= 1);
    EXPECT(!leads || (found[0] == world_rank && count == ranks.peer_count + 1));
    EXPECT(leads || (found[0] == ranks.peers[0] && ranks.peer_count == 1));
    for (int i = 0; leads && i < ranks.peer_count; ++i)
        EXPECT(found[1 + i] == ranks.peers[i]);
    exchange_with_peers(&ranks);

    EXPECT(ranks.architecture[0] != '\0' && ranks.peer_architecture[0] != '\0');
    const char* kind = getenv("OFFPATH_RANK_KIND");
    EXPECT(kind == NULL || ranks.is_device == (strcmp(kind, "device") == 0));

    /* A second split beside the first one, and each freed. */
    offpath_device_ranks_t again = {.struct_size = sizeof again};
    EXPECT(offpath_device_ranks_split(MPI_COMM_WORLD, &again) == OFFPATH_OK);
    EXPECT(again.node == ranks.node && again.peers[0] == ranks.peers[0]);
    offpath_device_ranks_free(&again);
    offpath_device_ranks_free(&ranks);
    EXPECT(ranks.internal == NULL);
    offpath_device_ranks_free(&ranks);
    free(found);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    if (argc != 3) {
        fprintf(stderr, "usage: %s HOSTS DEVICES | --fails TEXT\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (strcmp(argv[1], "--fails") == 0) {
        expect_fails(argv[2]);
    } else {
        expect_bad_arguments();
        expect_split(atoi(argv[1]), atoi(argv[2]));
    }
    MPI_Finalize();
    return 0;
}
