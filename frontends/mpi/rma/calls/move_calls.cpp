// MPI_Put, MPI_Get and their forms with a request.
#include <offpath/types.h>

#include "rma/epochs.h"
#include "rma/one_sided_operation.h"
#include "rma/served_window.h"

using namespace offpath::mpi;

namespace {

int move(Window& window, OneSidedOperation::Kind kind, const char* call, const void* origin, int origin_count,
         MPI_Datatype origin_type, int rank, MPI_Aint disp, int target_count, MPI_Datatype target_type,
         MPI_Request* request) {
    if (rank == MPI_PROC_NULL) return request == nullptr ? MPI_SUCCESS : done_request(window, call, request);
    OneSidedOperation operation;
    operation.kind = kind;
    Buffer& buffer = kind == OneSidedOperation::Kind::put ? operation.origin : operation.result;
    int error = set_buffer(buffer, origin, origin_count, origin_type, false);
    if (error == MPI_SUCCESS)
        error = set_target(window, operation, call, rank, disp, target_count, target_type, false);
    return error == MPI_SUCCESS ? start(window, std::move(operation), call, request) : raise(window, error);
}

// For a put or a get that a flush completes.
bool by_host(const Served& call, Moved kind, int rank, int count, MPI_Datatype type) {
    if (!call.by_host() || call.known() == nullptr) return call.by_host();
    return way_of(call.window(), kind, rank, count, type) == Way::host;
}

}  // namespace

extern "C" {

[[gnu::hot]] OFFPATH_API int MPI_Put(const void* origin, int origin_count, MPI_Datatype origin_type, int rank,
                                     MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Win win) {
    if (all_by_host())
        return PMPI_Put(origin, origin_count, origin_type, rank, disp, target_count, target_type, win);
    const presence::Inside inside;
    const Served call(win);
    if (by_host(call, Moved::put, rank, origin_count, origin_type))
        return call.ended(
            PMPI_Put(origin, origin_count, origin_type, rank, disp, target_count, target_type, call.host()));
    return move(call.window(), OneSidedOperation::Kind::put, "MPI_Put", origin, origin_count, origin_type,
                rank, disp, target_count, target_type, nullptr);
}

[[gnu::hot]] OFFPATH_API int MPI_Get(void* origin, int origin_count, MPI_Datatype origin_type, int rank,
                                     MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Win win) {
    if (all_by_host())
        return PMPI_Get(origin, origin_count, origin_type, rank, disp, target_count, target_type, win);
    const presence::Inside inside;
    const Served call(win);
    if (by_host(call, Moved::get, rank, origin_count, origin_type))
        return call.ended(
            PMPI_Get(origin, origin_count, origin_type, rank, disp, target_count, target_type, call.host()));
    return move(call.window(), OneSidedOperation::Kind::get, "MPI_Get", origin, origin_count, origin_type,
                rank, disp, target_count, target_type, nullptr);
}

OFFPATH_API int MPI_Rput(const void* origin, int origin_count, MPI_Datatype origin_type, int rank,
                         MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Win win,
                         MPI_Request* request) {
    if (all_by_host())
        return PMPI_Rput(origin, origin_count, origin_type, rank, disp, target_count, target_type, win,
                         request);
    const presence::Inside inside;
    const Served call(win);
    if (call.by_host() || request == nullptr)
        return call.ended(PMPI_Rput(origin, origin_count, origin_type, rank, disp, target_count, target_type,
                                    call.host(), request));
    return move(call.window(), OneSidedOperation::Kind::put, "MPI_Rput", origin, origin_count, origin_type,
                rank, disp, target_count, target_type, request);
}

OFFPATH_API int MPI_Rget(void* origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint disp,
                         int target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {
    if (all_by_host())
        return PMPI_Rget(origin, origin_count, origin_type, rank, disp, target_count, target_type, win,
                         request);
    const presence::Inside inside;
    const Served call(win);
    if (call.by_host() || request == nullptr)
        return call.ended(PMPI_Rget(origin, origin_count, origin_type, rank, disp, target_count, target_type,
                                    call.host(), request));
    return move(call.window(), OneSidedOperation::Kind::get, "MPI_Rget", origin, origin_count, origin_type,
                rank, disp, target_count, target_type, request);
}

}  // extern "C"
