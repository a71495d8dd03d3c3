/* MPI errors in a target region: `return` gets them as results, otherwise the first ends the region. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int handler = argc > 1 && strcmp(argv[1], "return") == 0;
    int wrong = 0, cut = 0;
#pragma omp target map(tofrom : wrong, cut)
    {
        MPI_Group group;
        MPI_Request request;
        int x[2] = {1, 2}, class;
        if (handler) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        wrong += MPI_Comm_group(MPI_COMM_WORLD, &group) != MPI_ERR_UNSUPPORTED_OPERATION;
        MPI_Info info;
        MPI_Comm none = MPI_COMM_WORLD;
        wrong += MPI_Comm_free(&none) != MPI_ERR_COMM;
        wrong += MPI_Comm_split(MPI_COMM_WORLD, -7, 0, &none) != MPI_ERR_ARG;
        MPI_Info_create(&info);
        MPI_Info_set(info, "REMOTE_DEST_HETERO", "maybe");
        wrong += MPI_Comm_set_info(MPI_COMM_WORLD, info) != MPI_ERR_INFO_VALUE;
        MPI_Win win;
        wrong += MPI_Win_create(x, 4, 4, info, MPI_COMM_WORLD, &win) != MPI_ERR_INFO_VALUE;
        MPI_Win_create(x, 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Info_set(info, "REMOTE_DEST_HETERO", "true");
        wrong += MPI_Win_set_info(win, info) != MPI_ERR_INFO_VALUE;
        MPI_Win_free(&win);
        wrong += MPI_Info_delete(info, "other") != MPI_ERR_INFO_NOKEY;
        MPI_Info_free(&info);
        MPI_Datatype gaps, never = MPI_INT;
        MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
        wrong += MPI_Send(x, 1, gaps, 0, 0, MPI_COMM_WORLD) != MPI_ERR_TYPE;
        MPI_Type_commit(&gaps);
        wrong += MPI_Bcast(x, 1, gaps, 0, MPI_COMM_WORLD) != MPI_ERR_TYPE;
        wrong += MPI_Type_vector(-1, 1, 2, MPI_INT, &never) != MPI_ERR_COUNT;
        wrong += MPI_Type_free(&never) != MPI_ERR_TYPE;
        MPI_Type_free(&gaps);
        wrong += gaps != MPI_DATATYPE_NULL;
        wrong += info != MPI_INFO_NULL || MPI_Info_set(info, "a", "b") != MPI_ERR_INFO;
        wrong += MPI_Probe(1000, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_ERR_RANK;
        wrong += MPI_Recv(x, 1, MPI_INT, 0, -3, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_ERR_TAG;
        wrong += MPI_Send(x, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD) != MPI_ERR_TYPE;
        wrong += MPI_Send(x, 1, MPI_INT, 0, -5, MPI_COMM_WORLD) != MPI_ERR_TAG;
        wrong += MPI_Send(x, 1, MPI_INT, 1000, 0, MPI_COMM_WORLD) != MPI_ERR_RANK;
        wrong += MPI_Send(x, -1, MPI_INT, 0, 0, MPI_COMM_WORLD) != MPI_ERR_COUNT;
        wrong += MPI_Bcast(x, 1, MPI_INT, -1, MPI_COMM_WORLD) != MPI_ERR_ROOT;
        wrong += MPI_Allreduce(MPI_IN_PLACE, x, 1, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD) != MPI_ERR_OP;
        MPI_Send(x, 2, MPI_INT, 0, 3, MPI_COMM_SELF);
        MPI_Irecv(x, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &request);
        cut = MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Error_class(cut, &class);
        wrong += class != MPI_ERR_TRUNCATE || request != MPI_REQUEST_NULL;
    }
    printf("%d wrong results\n", wrong);
    MPI_Finalize();
    return 0;
}
