#include "element_types.h"

#include "datatypes/reductions.h"
#include "datatypes/type_contents.h"

namespace offpath::mpi {

bool integer_of(std::size_t bytes, offpath_type_t& type) {
    switch (bytes) {
        case 1:
            type = OFFPATH_UINT8;
            return true;
        case 2:
            type = OFFPATH_UINT16;
            return true;
        case 4:
            type = OFFPATH_UINT32;
            return true;
        case 8:
            type = OFFPATH_UINT64;
            return true;
        default:
            return false;
    }
}

bool may_be_swapped(MPI_Datatype type) {
    if (!is_predefined(type)) return false;
    Reducer reducer;
    const bool pair = find_reducer(type, MPI_MAXLOC, reducer) == HostReason::none;
    const bool number = find_reducer(type, MPI_SUM, reducer) == HostReason::none;
    // Sums are defined for integers and floating-point numbers, bitwise operations only for integers.
    return !pair && (!number || find_reducer(type, MPI_BXOR, reducer) == HostReason::none);
}

int find_update(const Shape& target, MPI_Op op, offpath_type_t& type, offpath_reduction_t& reduction,
                bool& whole) {
    whole = false;
    if (op == MPI_REPLACE || op == MPI_NO_OP) {
        // Treated as bytes: no other rank sees a part of one update's result.
        type = OFFPATH_UINT8;
        reduction = op == MPI_REPLACE ? OFFPATH_REPLACE : OFFPATH_NO_OP;
        return MPI_SUCCESS;
    }
    if (target.basic == MPI_DATATYPE_NULL) return MPI_ERR_TYPE;
    Reducer reducer;
    if (find_reducer(target.basic, op, reducer) != HostReason::none) return MPI_ERR_OP;
    type = reducer.type;
    reduction = reducer.reduction;
    whole = target.pairs;
    return MPI_SUCCESS;
}

}  // namespace offpath::mpi
