/* Errors of hosts' messages to devices: the program counts those that are not what they should be. With
 * `without`, no rank has a device. */
#include <mpi.h>
#include <offpath_mpi.h>
#include <stdio.h>
#include <string.h>

static int class_of(int error) {
    int class = MPI_SUCCESS;
    MPI_Error_class(error, &class);
    return class;
}

static int set(MPI_Comm comm, const char* value) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "REMOTE_DEST_HETERO", value);
    const int error = MPI_Comm_set_info(comm, info);
    MPI_Info_free(&info);
    return class_of(error);
}

static int send(MPI_Comm comm, const void* data, int count, MPI_Datatype type, int dest, int tag) {
    return class_of(MPI_Send(data, count, type, dest, tag, comm));
}

static int windows(MPI_Comm comm, int size) {
    int wrong = 0, x = 1, memory[4];
    void* base;
    MPI_Win win;
    MPI_Info info;
    MPI_Group group;
    MPI_Info_create(&info);
    MPI_Info_set(info, "REMOTE_DEST_HETERO", "2");
    wrong += class_of(MPI_Win_create(memory, 4, 1, info, comm, &win)) != MPI_ERR_INFO_VALUE;
    MPI_Info_set(info, "REMOTE_DEST_HETERO", "1");
    wrong += class_of(MPI_Win_create(memory, -4, 1, info, comm, &win)) != MPI_ERR_SIZE;
    wrong += class_of(MPI_Win_create(memory, 4, 0, info, comm, &win)) != MPI_ERR_DISP;
    wrong += class_of(MPI_Win_allocate(4, 1, info, comm, &base, &win)) != MPI_ERR_UNSUPPORTED_OPERATION;
    wrong += class_of(MPI_Win_create_dynamic(info, comm, &win)) != MPI_ERR_UNSUPPORTED_OPERATION;
    MPI_Win_create(memory, 4, 1, MPI_INFO_NULL, comm, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    wrong += class_of(MPI_Win_set_info(win, info)) != MPI_ERR_INFO_VALUE;
    MPI_Win_free(&win);
#pragma omp target nowait
    {
        char byte[4];
        MPI_Win of_device;
        MPI_Info key;
        offpath_info_of_end(OFFPATH_END_ALIKE, &key);
        MPI_Win_create(byte, sizeof byte, 1, key, MPI_COMM_WORLD, &of_device);
        MPI_Info_free(&key);
        MPI_Win_fence(0, of_device);
        MPI_Win_free(&of_device);
    }
    wrong += MPI_Win_create(memory, sizeof memory, 1, info, comm, &win) != MPI_SUCCESS;
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Comm_group(comm, &group);
    wrong += class_of(MPI_Win_post(group, 0, win)) != MPI_ERR_UNSUPPORTED_OPERATION;
    wrong += class_of(MPI_Win_start(group, 0, win)) != MPI_ERR_UNSUPPORTED_OPERATION;
    MPI_Group_free(&group);
    wrong += class_of(MPI_Put(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, win)) != MPI_ERR_RMA_SYNC;
    wrong += MPI_Win_fence(0, win) != MPI_SUCCESS;
    wrong += class_of(MPI_Put(&x, 1, MPI_INT, size, 0, 1, MPI_INT, win)) != MPI_ERR_RANK;
    /* The device exposes 4 bytes. */
    wrong += class_of(MPI_Put(&x, 1, MPI_INT, 0, 1, 1, MPI_INT, win)) != MPI_ERR_RMA_RANGE;
    wrong += MPI_Win_free(&win) != MPI_SUCCESS;
#pragma omp taskwait
    MPI_Info_free(&info);
    return wrong;
}

/* Messages with the rank's own device, on MPI_COMM_SELF and on a duplicate that is made with the key. */
static int own_device(int rank) {
    int wrong = 0, number = -1;
    MPI_Info info;
    MPI_Comm devices;
    MPI_Request request;
    offpath_info_of_end(OFFPATH_END_OTHER, &info);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &devices);
    wrong += offpath_comm_set_end(MPI_COMM_SELF, OFFPATH_END_OTHER) != MPI_SUCCESS;
#pragma omp target nowait
    {
        int got = 0;
        MPI_Info key;
        MPI_Comm hosts;
        MPI_Recv(&got, 1, MPI_INT, 0, 9, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        ++got;
        offpath_info_of_end(OFFPATH_END_OTHER, &key);
        MPI_Comm_dup_with_info(MPI_COMM_WORLD, key, &hosts);
        MPI_Send(&got, 1, MPI_INT, rank, 9, hosts);
        MPI_Comm_free(&hosts);
        MPI_Info_free(&key);
    }
    MPI_Send(&rank, 1, MPI_INT, 0, 9, MPI_COMM_SELF);
    MPI_Recv(&number, 1, MPI_INT, rank, 9, devices, MPI_STATUS_IGNORE);
    wrong += number != rank + 1;
#pragma omp taskwait
    MPI_Irecv(&number, 1, MPI_INT, 0, 10, MPI_COMM_SELF, &request);
    wrong += class_of(MPI_Cancel(&request)) != MPI_ERR_UNSUPPORTED_OPERATION;
#pragma omp target
    {
        int last = 5;
        offpath_comm_set_end(MPI_COMM_SELF, OFFPATH_END_OTHER);
        MPI_Send(&last, 1, MPI_INT, 0, 10, MPI_COMM_SELF);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    wrong += number != 5;
    wrong += offpath_comm_set_end(MPI_COMM_SELF, OFFPATH_END_ALIKE) != MPI_SUCCESS;
    MPI_Sendrecv(&rank, 1, MPI_INT, 0, 1, &number, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    wrong += number != rank;
    MPI_Comm_free(&devices);
    MPI_Info_free(&info);
    return wrong;
}

int main(int argc, char** argv) {
    int rank, size, wrong = 0, x[2] = {1, 2}, flag, all = 0;
    MPI_Comm devices;
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &devices);
    if (argc > 1 && strcmp(argv[1], "without") == 0) {
        wrong += class_of(offpath_comm_set_end(devices, OFFPATH_END_OTHER)) != MPI_ERR_OTHER;
        wrong += offpath_comm_set_end(devices, OFFPATH_END_ALIKE) != MPI_SUCCESS;
    } else {
        wrong += set(devices, "yes") != MPI_ERR_INFO_VALUE;
        wrong += offpath_comm_set_end(devices, (offpath_end_t)7) != MPI_ERR_ARG;
        wrong += set(devices, "true") != MPI_SUCCESS;
        wrong += send(devices, x, -1, MPI_INT, 0, 0) != MPI_ERR_COUNT;
        wrong += send(devices, x, 1, MPI_DATATYPE_NULL, 0, 0) != MPI_ERR_TYPE;
        wrong += send(devices, x, 1, MPI_INT, size, 0) != MPI_ERR_RANK;
        wrong += send(devices, x, 1, MPI_INT, 0, -5) != MPI_ERR_TAG;
        wrong += send(devices, x, 1, MPI_INT, MPI_PROC_NULL, 0) != MPI_SUCCESS;
        wrong += class_of(MPI_Ssend(x, 1, MPI_INT, 0, 0, devices)) != MPI_ERR_UNSUPPORTED_OPERATION;
        wrong +=
            class_of(MPI_Send_init(x, 1, MPI_INT, 0, 0, devices, &request)) != MPI_ERR_UNSUPPORTED_OPERATION;
        wrong +=
            class_of(MPI_Improbe(0, 0, devices, &flag, &message, &status)) != MPI_ERR_UNSUPPORTED_OPERATION;
        wrong += class_of(MPI_Iprobe(size, 0, devices, &flag, &status)) != MPI_ERR_RANK;
        /* A message of the own device that is longer than the receive. */
#pragma omp target map(to : x)
        {
            offpath_comm_set_end(MPI_COMM_WORLD, OFFPATH_END_OTHER);
            MPI_Send(x, 2, MPI_INT, rank, 3, MPI_COMM_WORLD);
        }
        wrong += class_of(MPI_Recv(x, 1, MPI_INT, MPI_ANY_SOURCE, 3, devices, &status)) != MPI_ERR_TRUNCATE;
        wrong += windows(MPI_COMM_WORLD, size);
        wrong += own_device(rank);
        /* Back to hosts. */
        wrong += set(devices, "0") != MPI_SUCCESS;
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, x, 1, MPI_INT, (rank + size - 1) % size, 0,
                     devices, &status);
        wrong += x[0] != (rank + size - 1) % size;
    }
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%d wrong results\n", all);
    MPI_Comm_free(&devices);
    MPI_Finalize();
    return 0;
}
