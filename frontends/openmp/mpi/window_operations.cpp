// Operations on windows in target regions, with and without a request. The target's proxy executes them.
#include "openmp/mpi/datatypes.h"
#include "openmp/mpi/requests.h"
#include "openmp/mpi/windows.h"

#include <memory>
#include <string>

namespace offpath::region_mpi {
namespace {

offpath_place_t place_in(const Window& window, int target, MPI_Aint displacement) {
    offpath_place_t place{};
    place.target = target_in(window, target);
    if (displacement < 0) throw MpiError{MPI_ERR_DISP, "the displacement is negative"};
    place.offset = static_cast<std::uint64_t>(displacement) * window.exposed[place.target].unit;
    return place;
}

std::size_t agreed_bytes(int count, MPI_Datatype type, int target_count, MPI_Datatype target_type) {
    const std::size_t bytes = bytes_of(count, type);
    if (bytes != bytes_of(target_count, target_type))
        throw MpiError{MPI_ERR_ARG, "origin and target have different sizes"};
    return bytes;
}

offpath_type_t element_of(MPI_Datatype type, offpath_reduction_t reduction) {
    const offpath_type_t element = type_of(type).element;
    const bool moves = reduction == OFFPATH_REPLACE || reduction == OFFPATH_NO_OP;
    if (element == offpath_type_t{} ||
        (!moves && offpath_reduction_supported(context(), element, reduction) != OFFPATH_OK))
        throw MpiError{MPI_ERR_OP, "the device does not know this reduction for this datatype"};
    return element;
}

// Starts an operation without a request: start(window, place, nullptr). MPI_PROC_NULL: none.
template <typename Start>
int operate(const char* call, int target, MPI_Aint displacement, MPI_Win win, Start&& start) {
    return in_window(call, win, [&](Window& window) {
        if (target == MPI_PROC_NULL) return;
        const offpath_place_t place = place_in(window, target, displacement);
        check(start(window.window, &place, nullptr), "the operation");
    });
}

// The same with a request.
template <typename Start>
int request(const char* call, int target, MPI_Aint displacement, MPI_Win win, MPI_Request* handle,
            Start&& start) {
    return in_window(call, win, [&](Window& window) {
        auto made = std::make_unique<Request>();
        if (target != MPI_PROC_NULL) {
            const offpath_place_t place = place_in(window, target, displacement);
            check(start(window.window, &place, &made->handle), "the operation");
        }
        *handle = handle_of(std::move(made));
    });
}

}  // namespace
}  // namespace offpath::region_mpi

using namespace offpath::region_mpi;

// OPERATION(Name, Rname, (parameters before the target), (parameters after the displacement), body): the call
// without a request and the other. The body starts `handle` at `place` of `window`.
#define OFFPATH_PARAMETERS(...) __VA_ARGS__
#define OPERATION(name, rname, before, after, ...)                                               \
    OFFPATH_EXPORT int MPI_##name(OFFPATH_PARAMETERS before, int target, MPI_Aint displacement,  \
                                  OFFPATH_PARAMETERS after, MPI_Win win) {                       \
        return operate("MPI_" #name, target, displacement, win,                                  \
                       [&](offpath_window_h window, const offpath_place_t* place,                \
                           offpath_request_h* handle) { __VA_ARGS__ });                          \
    }                                                                                            \
    OFFPATH_EXPORT int MPI_##rname(OFFPATH_PARAMETERS before, int target, MPI_Aint displacement, \
                                   OFFPATH_PARAMETERS after, MPI_Win win, MPI_Request* made) {   \
        return request("MPI_" #rname, target, displacement, win, made,                           \
                       [&](offpath_window_h window, const offpath_place_t* place,                \
                           offpath_request_h* handle) { __VA_ARGS__ });                          \
    }

OPERATION(Put, Rput, (const void* origin, int count, MPI_Datatype type),
          (int target_count, MPI_Datatype target_type),
          return offpath_put(window, origin, agreed_bytes(count, type, target_count, target_type), place,
                             handle);)

OPERATION(Get, Rget, (void* origin, int count, MPI_Datatype type),
          (int target_count, MPI_Datatype target_type),
          return offpath_get(window, origin, agreed_bytes(count, type, target_count, target_type), place,
                             handle);)

OPERATION(Accumulate, Raccumulate, (const void* origin, int count, MPI_Datatype type),
          (int target_count, MPI_Datatype target_type, MPI_Op op),
          const offpath_reduction_t reduction = reduction_of(op);
          (void)agreed_bytes(count, type, target_count, target_type);
          return offpath_accumulate(window, origin, elements(count), element_of(type, reduction), reduction,
                                    place, handle);)

// With MPI_NO_OP the origin does not count.
OPERATION(Get_accumulate, Rget_accumulate,
          (const void* origin, int count, MPI_Datatype type, void* result, int result_count,
           MPI_Datatype result_type),
          (int target_count, MPI_Datatype target_type, MPI_Op op),
          const offpath_reduction_t reduction = reduction_of(op);
          (void)agreed_bytes(result_count, result_type, target_count, target_type);
          if (reduction != OFFPATH_NO_OP)(void) agreed_bytes(count, type, target_count, target_type);
          return offpath_get_accumulate(window, origin, result, elements(result_count),
                                        element_of(result_type, reduction), reduction, place, handle);)

OFFPATH_EXPORT int MPI_Fetch_and_op(const void* origin, void* result, MPI_Datatype type, int target,
                                    MPI_Aint displacement, MPI_Op op, MPI_Win win) {
    return operate("MPI_Fetch_and_op", target, displacement, win,
                   [&](offpath_window_h window, const offpath_place_t* place, offpath_request_h* handle) {
                       const offpath_reduction_t reduction = reduction_of(op);
                       return offpath_get_accumulate(window, origin, result, 1, element_of(type, reduction),
                                                     reduction, place, handle);
                   });
}

OFFPATH_EXPORT int MPI_Compare_and_swap(const void* origin, const void* compare, void* result,
                                        MPI_Datatype type, int target, MPI_Aint displacement, MPI_Win win) {
    return operate("MPI_Compare_and_swap", target, displacement, win,
                   [&](offpath_window_h window, const offpath_place_t* place, offpath_request_h* handle) {
                       return offpath_compare_swap(window, origin, compare, result,
                                                   element_of(type, OFFPATH_NO_OP), place->target,
                                                   place->offset, handle);
                   });
}
