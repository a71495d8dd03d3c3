// MPI_Put, Get and their forms with a request.
#include <offpath/types.h>

#include "transfer.h"

using namespace offpath::mpi;

namespace {

int move(Window& window, Transfer::Kind kind, const char* call, const void* origin, int origin_count,
         MPI_Datatype origin_type, int rank, MPI_Aint disp, int target_count, MPI_Datatype target_type,
         MPI_Request* request) {
    if (rank == MPI_PROC_NULL) return request == nullptr ? MPI_SUCCESS : done_request(window, call, request);
    Transfer transfer;
    transfer.kind = kind;
    Buffer& buffer = kind == Transfer::Kind::put ? transfer.origin : transfer.result;
    int error = set_buffer(buffer, origin, origin_count, origin_type, false);
    if (error == MPI_SUCCESS)
        error = set_target(window, transfer, rank, disp, target_count, target_type, false);
    return error == MPI_SUCCESS ? start(window, transfer, call, request) : raise(window, error);
}

}  // namespace

extern "C" {

OFFPATH_API int MPI_Put(const void* origin, int origin_count, MPI_Datatype origin_type, int rank,
                        MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Win win) {
    Window* window = find_window(win);
    if (window == nullptr)
        return PMPI_Put(origin, origin_count, origin_type, rank, disp, target_count, target_type, win);
    return move(*window, Transfer::Kind::put, "MPI_Put", origin, origin_count, origin_type, rank, disp,
                target_count, target_type, nullptr);
}

OFFPATH_API int MPI_Get(void* origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint disp,
                        int target_count, MPI_Datatype target_type, MPI_Win win) {
    Window* window = find_window(win);
    if (window == nullptr)
        return PMPI_Get(origin, origin_count, origin_type, rank, disp, target_count, target_type, win);
    return move(*window, Transfer::Kind::get, "MPI_Get", origin, origin_count, origin_type, rank, disp,
                target_count, target_type, nullptr);
}

OFFPATH_API int MPI_Rput(const void* origin, int origin_count, MPI_Datatype origin_type, int rank,
                         MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Win win,
                         MPI_Request* request) {
    Window* window = find_window(win);
    if (window == nullptr || request == nullptr)
        return PMPI_Rput(origin, origin_count, origin_type, rank, disp, target_count, target_type, win,
                         request);
    return move(*window, Transfer::Kind::put, "MPI_Rput", origin, origin_count, origin_type, rank, disp,
                target_count, target_type, request);
}

OFFPATH_API int MPI_Rget(void* origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint disp,
                         int target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {
    Window* window = find_window(win);
    if (window == nullptr || request == nullptr)
        return PMPI_Rget(origin, origin_count, origin_type, rank, disp, target_count, target_type, win,
                         request);
    return move(*window, Transfer::Kind::get, "MPI_Rget", origin, origin_count, origin_type, rank, disp,
                target_count, target_type, request);
}

}  // extern "C"
