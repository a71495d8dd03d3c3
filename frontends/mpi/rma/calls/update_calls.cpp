// MPI_Accumulate and its family.
#include <offpath/types.h>

#include <array>

#include "gpu/memory.h"
#include "rma/element_types.h"
#include "rma/one_sided_operation.h"
#include "rma/served_window.h"
#include "rma/window_loss.h"

using namespace offpath::mpi;

namespace {

struct Arguments {
    const void* buffer = nullptr;
    int count = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
};

int update(Window& window, const char* call, const Arguments& origin, const Arguments* result, int rank,
           MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Request* request) {
    if (rank == MPI_PROC_NULL) return request == nullptr ? MPI_SUCCESS : done_request(window, call, request);
    if (op == MPI_OP_NULL) return raise(window, MPI_ERR_OP);
    // Such an operation changes nothing and fetches nothing.
    if (result == nullptr && op == MPI_NO_OP)
        return request == nullptr ? MPI_SUCCESS : done_request(window, call, request);
    if (target_type == MPI_DATATYPE_NULL) return raise(window, MPI_ERR_TYPE);
    const ShapePointer shape = shape_of(target_type);
    if (shape == nullptr) return raise(window, MPI_ERR_TYPE);
    OneSidedOperation operation;
    operation.kind =
        result == nullptr ? OneSidedOperation::Kind::accumulate : OneSidedOperation::Kind::get_accumulate;
    operation.op = op;
    // Pairs that move without their gaps are no elements of the host's MPI.
    const bool moves = op == MPI_REPLACE || op == MPI_NO_OP;
    if (!moves || !shape->pairs) operation.basic = shape->basic;
    bool whole = false;
    int error = find_update(*shape, op, operation.type, operation.reduction, whole);
    if (error == MPI_SUCCESS)
        error = set_target(window, operation, call, rank, disp, target_count, target_type, whole);
    if (error == MPI_SUCCESS && op != MPI_NO_OP)
        error = set_buffer(operation.origin, origin.buffer, origin.count, origin.type, whole);
    if (error == MPI_SUCCESS && result != nullptr)
        error = set_buffer(operation.result, result->buffer, result->count, result->type, whole);
    return error == MPI_SUCCESS ? start(window, std::move(operation), call, request) : raise(window, error);
}

int compare_and_swap(Window& window, const void* origin, const void* compare, void* result, MPI_Datatype type,
                     int rank, MPI_Aint disp) {
    if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
    OneSidedOperation operation;
    operation.kind = OneSidedOperation::Kind::compare_swap;
    operation.basic = type;
    const int error = set_target(window, operation, "MPI_Compare_and_swap", rank, disp, 1, type, false);
    if (error != MPI_SUCCESS) return raise(window, error);
    offpath_type_t element{};
    if (!may_be_swapped(type) || !operation.at.plain() || !integer_of(operation.at.bytes(), element))
        return raise(window, MPI_ERR_TYPE);
    const std::uint64_t size = window.peers[static_cast<std::size_t>(operation.target)].bytes;
    if (!window.dynamic && (operation.offset > size || operation.at.bytes() > size - operation.offset))
        return raise(window, MPI_ERR_RMA_RANGE);
    // Operands in GPU memory are copied, and their result is there when the call returns.
    const std::size_t bytes = operation.at.bytes();
    std::array<std::uint64_t, 3> staged{};
    const bool in_gpu =
        gpu::any_driver() &&
        (gpu::is_device_memory(origin) || gpu::is_device_memory(compare) || gpu::is_device_memory(result));
    void* const program_result = result;
    if (in_gpu) {
        gpu::count_staged();
        gpu::copy(&staged[0], origin, bytes);
        gpu::copy(&staged[1], compare, bytes);
        origin = &staged[0];
        compare = &staged[1];
        result = &staged[2];
    }
    operation.origin.address = const_cast<void*>(origin);
    operation.compare = compare;
    operation.result = {result, operation.at};
    const int target = operation.target;
    offpath_status_t status = OFFPATH_ERR_PEER_LOST;
    LossGuard guard(window);
    if (!has_departed(window)) {
        status = offpath_compare_swap(window.device, origin, compare, result, element,
                                      static_cast<std::uint32_t>(target), operation.offset, nullptr);
        if (status == OFFPATH_OK && window.loss != nullptr)
            note_unfinished(window, std::move(operation), "MPI_Compare_and_swap", nullptr);
    }
    if (status == OFFPATH_ERR_PEER_LOST && window.loss != nullptr) {
        status = has_departed(window) ? OFFPATH_OK : depart_after(window, status);
        if (status == OFFPATH_OK) status = start_departed(window, operation, false);
    }
    guard.unlock();
    if (status == OFFPATH_OK && in_gpu) {
        status = flush(window, target);
        gpu::copy(program_result, result, bytes);
    }
    if (status != OFFPATH_OK) return raise(window, error_of(status));
    count_one_sided(bytes);
    return MPI_SUCCESS;
}

}  // namespace

extern "C" {

[[gnu::hot]] OFFPATH_API int MPI_Accumulate(const void* origin, int origin_count, MPI_Datatype origin_type,
                                            int rank, MPI_Aint disp, int target_count,
                                            MPI_Datatype target_type, MPI_Op op, MPI_Win win) {
    if (all_by_host())
        return PMPI_Accumulate(origin, origin_count, origin_type, rank, disp, target_count, target_type, op,
                               win);
    const presence::Inside inside;
    const Served call(win);
    if (call.by_host())
        return call.ended(PMPI_Accumulate(origin, origin_count, origin_type, rank, disp, target_count,
                                          target_type, op, call.host()));
    return update(call.window(), "MPI_Accumulate", {origin, origin_count, origin_type}, nullptr, rank, disp,
                  target_count, target_type, op, nullptr);
}

OFFPATH_API int MPI_Raccumulate(const void* origin, int origin_count, MPI_Datatype origin_type, int rank,
                                MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Op op,
                                MPI_Win win, MPI_Request* request) {
    if (all_by_host())
        return PMPI_Raccumulate(origin, origin_count, origin_type, rank, disp, target_count, target_type, op,
                                win, request);
    const presence::Inside inside;
    const Served call(win);
    if (call.by_host() || request == nullptr)
        return call.ended(PMPI_Raccumulate(origin, origin_count, origin_type, rank, disp, target_count,
                                           target_type, op, call.host(), request));
    return update(call.window(), "MPI_Raccumulate", {origin, origin_count, origin_type}, nullptr, rank, disp,
                  target_count, target_type, op, request);
}

[[gnu::hot]] OFFPATH_API int MPI_Get_accumulate(const void* origin, int origin_count,
                                                MPI_Datatype origin_type, void* result, int result_count,
                                                MPI_Datatype result_type, int rank, MPI_Aint disp,
                                                int target_count, MPI_Datatype target_type, MPI_Op op,
                                                MPI_Win win) {
    if (all_by_host())
        return PMPI_Get_accumulate(origin, origin_count, origin_type, result, result_count, result_type, rank,
                                   disp, target_count, target_type, op, win);
    const presence::Inside inside;
    const Served call(win);
    if (call.by_host())
        return call.ended(PMPI_Get_accumulate(origin, origin_count, origin_type, result, result_count,
                                              result_type, rank, disp, target_count, target_type, op,
                                              call.host()));
    const Arguments into{result, result_count, result_type};
    return update(call.window(), "MPI_Get_accumulate", {origin, origin_count, origin_type}, &into, rank, disp,
                  target_count, target_type, op, nullptr);
}

OFFPATH_API int MPI_Rget_accumulate(const void* origin, int origin_count, MPI_Datatype origin_type,
                                    void* result, int result_count, MPI_Datatype result_type, int rank,
                                    MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Op op,
                                    MPI_Win win, MPI_Request* request) {
    if (all_by_host())
        return PMPI_Rget_accumulate(origin, origin_count, origin_type, result, result_count, result_type,
                                    rank, disp, target_count, target_type, op, win, request);
    const presence::Inside inside;
    const Served call(win);
    if (call.by_host() || request == nullptr)
        return call.ended(PMPI_Rget_accumulate(origin, origin_count, origin_type, result, result_count,
                                               result_type, rank, disp, target_count, target_type, op,
                                               call.host(), request));
    const Arguments into{result, result_count, result_type};
    return update(call.window(), "MPI_Rget_accumulate", {origin, origin_count, origin_type}, &into, rank,
                  disp, target_count, target_type, op, request);
}

[[gnu::hot]] OFFPATH_API int MPI_Fetch_and_op(const void* origin, void* result, MPI_Datatype type, int rank,
                                              MPI_Aint disp, MPI_Op op, MPI_Win win) {
    if (all_by_host()) return PMPI_Fetch_and_op(origin, result, type, rank, disp, op, win);
    const presence::Inside inside;
    const Served call(win);
    if (call.by_host())
        return call.ended(PMPI_Fetch_and_op(origin, result, type, rank, disp, op, call.host()));
    const Arguments into{result, 1, type};
    return update(call.window(), "MPI_Fetch_and_op", {origin, 1, type}, &into, rank, disp, 1, type, op,
                  nullptr);
}

[[gnu::hot]] OFFPATH_API int MPI_Compare_and_swap(const void* origin, const void* compare, void* result,
                                                  MPI_Datatype type, int rank, MPI_Aint disp, MPI_Win win) {
    if (all_by_host()) return PMPI_Compare_and_swap(origin, compare, result, type, rank, disp, win);
    const presence::Inside inside;
    const Served call(win);
    if (call.by_host())
        return call.ended(PMPI_Compare_and_swap(origin, compare, result, type, rank, disp, call.host()));
    return compare_and_swap(call.window(), origin, compare, result, type, rank, disp);
}

}  // extern "C"
