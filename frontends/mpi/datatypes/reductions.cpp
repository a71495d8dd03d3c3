#include "reductions.h"

#include <algorithm>
#include <climits>
#include <optional>
#include <vector>

#include "runtime/runtime.h"

namespace offpath::mpi {
namespace {

// The operations that MPI 3.1, chapter 5.9.2, allows for a type.
enum TypeKind : unsigned {
    c_integer = 1,
    fortran_integer = 2,
    floating = 4,
    logical = 8,
    complex = 16,
    byte = 32,
    pair = 64
};

struct Type {
    MPI_Datatype mpi;
    offpath_type_t device;
    unsigned kinds;
};
struct Operator {
    MPI_Op mpi;
    offpath_reduction_t device;
    unsigned kinds;
};

offpath_type_t signed_of(std::size_t bytes) {
    return bytes == 1   ? OFFPATH_INT8
           : bytes == 2 ? OFFPATH_INT16
           : bytes == 4 ? OFFPATH_INT32
                        : OFFPATH_INT64;
}
offpath_type_t unsigned_of(std::size_t bytes) {
    return static_cast<offpath_type_t>(signed_of(bytes) + 1);
}
static_assert(OFFPATH_UINT8 == OFFPATH_INT8 + 1 && OFFPATH_UINT64 == OFFPATH_INT64 + 1);

int size_of(MPI_Datatype type) {
    int size = 0;
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size) != MPI_SUCCESS) return 0;
    return size;
}

// The types of a program's Fortran compiler are identified by their sizes.
void add_fortran(std::vector<Type>& types) {
    for (MPI_Datatype integer : {MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8}) {
        const int size = size_of(integer);
        if (size > 0 && size <= 8)
            types.push_back({integer, signed_of(static_cast<std::size_t>(size)), fortran_integer});
    }
    for (MPI_Datatype real : {MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8}) {
        const int size = size_of(real);
        if (size == 4) types.push_back({real, OFFPATH_FLOAT32, floating});
        if (size == 8) types.push_back({real, OFFPATH_FLOAT64, floating});
    }
    for (MPI_Datatype number : {MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_COMPLEX8, MPI_COMPLEX16}) {
        const int size = size_of(number);
        if (size == 8) types.push_back({number, OFFPATH_COMPLEX64, complex});
        if (size == 16) types.push_back({number, OFFPATH_COMPLEX128, complex});
    }
    if (size_of(MPI_LOGICAL) == 4) types.push_back({MPI_LOGICAL, OFFPATH_LOGICAL32, logical});
    if (size_of(MPI_2INTEGER) == 8) types.push_back({MPI_2INTEGER, OFFPATH_INT32_INT32, pair});
    if (size_of(MPI_2REAL) == 8) types.push_back({MPI_2REAL, OFFPATH_FLOAT32_FLOAT32, pair});
    if (size_of(MPI_2DOUBLE_PRECISION) == 16)
        types.push_back({MPI_2DOUBLE_PRECISION, OFFPATH_FLOAT64_FLOAT64, pair});
}

std::vector<Type> all_types() {
    constexpr unsigned any_integer = c_integer | fortran_integer;
    std::vector<Type> types = {
        {MPI_INT, signed_of(sizeof(int)), c_integer},
        {MPI_DOUBLE, OFFPATH_FLOAT64, floating},
        {MPI_FLOAT, OFFPATH_FLOAT32, floating},
        {MPI_LONG, signed_of(sizeof(long)), c_integer},
        {MPI_SHORT, signed_of(sizeof(short)), c_integer},
        {MPI_UNSIGNED_SHORT, unsigned_of(sizeof(short)), c_integer},
        {MPI_UNSIGNED, unsigned_of(sizeof(unsigned)), c_integer},
        {MPI_UNSIGNED_LONG, unsigned_of(sizeof(long)), c_integer},
        {MPI_LONG_LONG, signed_of(sizeof(long long)), c_integer},
        {MPI_UNSIGNED_LONG_LONG, unsigned_of(sizeof(long long)), c_integer},
        {MPI_SIGNED_CHAR, OFFPATH_INT8, c_integer},
        // The standard reserves MPI_CHAR for text. Open MPI and MPICH treat it as a number, as C does.
        {MPI_CHAR, CHAR_MIN < 0 ? OFFPATH_INT8 : OFFPATH_UINT8, c_integer},
        {MPI_UNSIGNED_CHAR, OFFPATH_UINT8, c_integer},
        {MPI_INT8_T, OFFPATH_INT8, c_integer},
        {MPI_INT16_T, OFFPATH_INT16, c_integer},
        {MPI_INT32_T, OFFPATH_INT32, c_integer},
        {MPI_INT64_T, OFFPATH_INT64, c_integer},
        {MPI_UINT8_T, OFFPATH_UINT8, c_integer},
        {MPI_UINT16_T, OFFPATH_UINT16, c_integer},
        {MPI_UINT32_T, OFFPATH_UINT32, c_integer},
        {MPI_UINT64_T, OFFPATH_UINT64, c_integer},
        {MPI_AINT, signed_of(sizeof(MPI_Aint)), any_integer},
        {MPI_OFFSET, signed_of(sizeof(MPI_Offset)), any_integer},
        {MPI_COUNT, signed_of(sizeof(MPI_Count)), any_integer},
        {MPI_LONG_DOUBLE, OFFPATH_LONG_DOUBLE, floating},
        {MPI_C_BOOL, OFFPATH_BOOL8, logical},
        {MPI_CXX_BOOL, OFFPATH_BOOL8, logical},
        {MPI_C_FLOAT_COMPLEX, OFFPATH_COMPLEX64, complex},
        {MPI_C_DOUBLE_COMPLEX, OFFPATH_COMPLEX128, complex},
        {MPI_C_LONG_DOUBLE_COMPLEX, OFFPATH_COMPLEX_LONG_DOUBLE, complex},
        {MPI_CXX_FLOAT_COMPLEX, OFFPATH_COMPLEX64, complex},
        {MPI_CXX_DOUBLE_COMPLEX, OFFPATH_COMPLEX128, complex},
        {MPI_CXX_LONG_DOUBLE_COMPLEX, OFFPATH_COMPLEX_LONG_DOUBLE, complex},
        {MPI_BYTE, OFFPATH_UINT8, byte},
        {MPI_2INT, OFFPATH_INT32_INT32, pair},
        {MPI_SHORT_INT, OFFPATH_INT16_INT32, pair},
        {MPI_LONG_INT, OFFPATH_INT64_INT32, pair},
        {MPI_FLOAT_INT, OFFPATH_FLOAT32_INT32, pair},
        {MPI_DOUBLE_INT, OFFPATH_FLOAT64_INT32, pair},
        {MPI_LONG_DOUBLE_INT, OFFPATH_LONG_DOUBLE_INT32, pair},
    };
    static_assert(sizeof(int) == 4 && sizeof(long) == 8 && sizeof(bool) == 1);
    add_fortran(types);
    std::erase_if(types, [](const Type& type) { return type.mpi == MPI_DATATYPE_NULL; });
    return types;
}

std::vector<Operator> all_operators() {
    constexpr unsigned integer = c_integer | fortran_integer;
    return {
        {MPI_SUM, OFFPATH_SUM, integer | floating | complex},
        {MPI_PROD, OFFPATH_PRODUCT, integer | floating | complex},
        {MPI_MIN, OFFPATH_MINIMUM, integer | floating},
        {MPI_MAX, OFFPATH_MAXIMUM, integer | floating},
        {MPI_LAND, OFFPATH_LAND, c_integer | logical},
        {MPI_LOR, OFFPATH_LOR, c_integer | logical},
        {MPI_LXOR, OFFPATH_LXOR, c_integer | logical},
        {MPI_BAND, OFFPATH_BAND, integer | byte},
        {MPI_BOR, OFFPATH_BOR, integer | byte},
        {MPI_BXOR, OFFPATH_BXOR, integer | byte},
        {MPI_MINLOC, OFFPATH_MINLOC, pair},
        {MPI_MAXLOC, OFFPATH_MAXLOC, pair},
    };
}

template <typename Entry, typename Handle>
const Entry* find(const std::vector<Entry>& entries, Handle handle) {
    const auto found =
        std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.mpi == handle; });
    return found != entries.end() ? &*found : nullptr;
}

}  // namespace

namespace {

HostReason look_up_reducer(MPI_Datatype type, MPI_Op op, Reducer& reducer) {
    static const std::vector<Type> types = all_types();
    static const std::vector<Operator> operators = all_operators();
    const Operator* operation = find(operators, op);
    if (operation == nullptr) return HostReason::user_op;
    const Type* element = find(types, type);
    if (element == nullptr || (element->kinds & operation->kinds) == 0) return HostReason::reduction;
    reducer = {element->device, operation->device};
    return offpath_reduction_supported(runtime().context, reducer.type, reducer.reduction) == OFFPATH_OK
               ? HostReason::none
               : HostReason::reduction;
}

}  // namespace

HostReason find_reducer(MPI_Datatype type, MPI_Op op, Reducer& reducer) {
    // A program's own types and operations may get the handle of others that it has freed, which were its own
    // too, so the answer stays right.
    struct Latest {
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_Op op = MPI_OP_NULL;
        HostReason reason = HostReason::user_op;
        Reducer reducer{};
    };
    static thread_local Latest latest;
    if (latest.type != type || latest.op != op) {
        latest.reason = look_up_reducer(type, op, latest.reducer);
        latest.type = type;
        latest.op = op;
    }
    reducer = latest.reducer;
    return latest.reason;
}

bool depends_on_order(const Reducer& reducer) {
    if (reducer.reduction != OFFPATH_SUM && reducer.reduction != OFFPATH_PRODUCT) return false;
    switch (reducer.type) {
        case OFFPATH_FLOAT32:
        case OFFPATH_FLOAT64:
        case OFFPATH_LONG_DOUBLE:
        case OFFPATH_COMPLEX64:
        case OFFPATH_COMPLEX128:
        case OFFPATH_COMPLEX_LONG_DOUBLE:
            return true;
        default:
            return false;
    }
}

bool plausible_operands(const void* sendbuf, const void* recvbuf, std::int64_t count, MPI_Datatype type,
                        MPI_Op op) {
    return recvbuf != MPI_IN_PLACE && (sendbuf != recvbuf || count == 0) && type != MPI_DATATYPE_NULL &&
           op != MPI_OP_NULL;
}

}  // namespace offpath::mpi
