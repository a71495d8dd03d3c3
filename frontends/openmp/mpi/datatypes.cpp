#include "openmp/mpi/datatypes.h"

#include "openmp/mpi/communicators.h"
#include "openmp/mpi/errors.h"

#include <complex>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace offpath::region_mpi {
namespace {

template <typename T>
constexpr offpath_type_t integer() {
    constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0);
    switch (sizeof(T)) {
        case 1:
            return is_signed ? OFFPATH_INT8 : OFFPATH_UINT8;
        case 2:
            return is_signed ? OFFPATH_INT16 : OFFPATH_UINT16;
        case 4:
            return is_signed ? OFFPATH_INT32 : OFFPATH_UINT32;
        default:
            return is_signed ? OFFPATH_INT64 : OFFPATH_UINT64;
    }
}

using Types = std::unordered_map<std::uint64_t, Type>;

Type predefined_type(std::size_t bytes, offpath_type_t element, std::size_t alignment) {
    return {bytes, element, true, true, std::make_shared<Layout>(Layout::of_bytes(bytes, alignment))};
}

template <typename T>
void add_integer(Types& types, MPI_Datatype handle) {
    types[bits_of(handle)] = predefined_type(sizeof(T), integer<T>(), alignof(T));
}

Types make_types() {
    Types types;
    add_integer<signed char>(types, MPI_SIGNED_CHAR);
    add_integer<unsigned char>(types, MPI_UNSIGNED_CHAR);
    add_integer<unsigned char>(types, MPI_BYTE);
    add_integer<short>(types, MPI_SHORT);
    add_integer<unsigned short>(types, MPI_UNSIGNED_SHORT);
    add_integer<int>(types, MPI_INT);
    add_integer<unsigned>(types, MPI_UNSIGNED);
    add_integer<long>(types, MPI_LONG);
    add_integer<unsigned long>(types, MPI_UNSIGNED_LONG);
    add_integer<long long>(types, MPI_LONG_LONG);
    add_integer<unsigned long long>(types, MPI_UNSIGNED_LONG_LONG);
    add_integer<std::int8_t>(types, MPI_INT8_T);
    add_integer<std::uint8_t>(types, MPI_UINT8_T);
    add_integer<std::int16_t>(types, MPI_INT16_T);
    add_integer<std::uint16_t>(types, MPI_UINT16_T);
    add_integer<std::int32_t>(types, MPI_INT32_T);
    add_integer<std::uint32_t>(types, MPI_UINT32_T);
    add_integer<std::int64_t>(types, MPI_INT64_T);
    add_integer<std::uint64_t>(types, MPI_UINT64_T);
    add_integer<MPI_Aint>(types, MPI_AINT);
    add_integer<MPI_Offset>(types, MPI_OFFSET);
    add_integer<MPI_Count>(types, MPI_COUNT);
    const auto add = [&](MPI_Datatype handle, std::size_t bytes, offpath_type_t element,
                         std::size_t alignment) {
        types[bits_of(handle)] = predefined_type(bytes, element, alignment);
    };
    add(MPI_CHAR, 1, {}, 1);
    add(MPI_PACKED, 1, {}, 1);
    add(MPI_WCHAR, sizeof(wchar_t), {}, alignof(wchar_t));
    add(MPI_FLOAT, sizeof(float), OFFPATH_FLOAT32, alignof(float));
    add(MPI_DOUBLE, sizeof(double), OFFPATH_FLOAT64, alignof(double));
    add(MPI_LONG_DOUBLE, sizeof(long double), OFFPATH_LONG_DOUBLE, alignof(long double));
    add(MPI_C_BOOL, sizeof(bool), OFFPATH_BOOL8, alignof(bool));
    add(MPI_C_FLOAT_COMPLEX, sizeof(std::complex<float>), OFFPATH_COMPLEX64, alignof(float));
    add(MPI_C_DOUBLE_COMPLEX, sizeof(std::complex<double>), OFFPATH_COMPLEX128, alignof(double));
    add(MPI_2INT, 2 * sizeof(int), OFFPATH_INT32_INT32, alignof(int));
    add(MPI_FLOAT_INT, 8, OFFPATH_FLOAT32_INT32, alignof(float));
    add(MPI_DOUBLE_INT, 16, OFFPATH_FLOAT64_INT32, alignof(double));
    add(MPI_LONG_INT, 16, OFFPATH_INT64_INT32, alignof(long));
    return types;
}

}  // namespace

Type type_of(MPI_Datatype handle) {
    static const Types types = make_types();
    auto found = types.find(bits_of(handle));
    if (found == types.end()) found = types.find(bits_of(own(handle)));
    if (found != types.end()) return found->second;
    if (const auto derived = derived_type(handle)) return *derived;
    throw MpiError{
        MPI_ERR_TYPE,
        "it is no datatype of target regions: they know C's predefined ones, and those that regions "
        "have derived from these"};
}

Type type_of_message(MPI_Datatype handle) {
    Type type = type_of(handle);
    if (!type.committed) throw MpiError{MPI_ERR_TYPE, "the datatype is not committed"};
    return type;
}

offpath_reduction_t reduction_of(MPI_Op handle) {
    const MPI_Op op = own(handle);
    if (op == MPI_SUM) return OFFPATH_SUM;
    if (op == MPI_PROD) return OFFPATH_PRODUCT;
    if (op == MPI_MIN) return OFFPATH_MINIMUM;
    if (op == MPI_MAX) return OFFPATH_MAXIMUM;
    if (op == MPI_BAND) return OFFPATH_BAND;
    if (op == MPI_BOR) return OFFPATH_BOR;
    if (op == MPI_BXOR) return OFFPATH_BXOR;
    if (op == MPI_LAND) return OFFPATH_LAND;
    if (op == MPI_LOR) return OFFPATH_LOR;
    if (op == MPI_LXOR) return OFFPATH_LXOR;
    if (op == MPI_MINLOC) return OFFPATH_MINLOC;
    if (op == MPI_MAXLOC) return OFFPATH_MAXLOC;
    if (op == MPI_REPLACE) return OFFPATH_REPLACE;
    if (op == MPI_NO_OP) return OFFPATH_NO_OP;
    throw MpiError{MPI_ERR_OP, "target regions know MPI's predefined reductions only"};
}

std::size_t elements(int count) {
    if (count < 0) throw MpiError{MPI_ERR_COUNT, "the count is " + std::to_string(count)};
    return static_cast<std::size_t>(count);
}

std::size_t bytes_of(int count, MPI_Datatype handle) {
    const Type type = type_of_message(handle);
    if (!type.plain)
        throw MpiError{MPI_ERR_TYPE,
                       "a datatype with gaps: target regions can use it in point-to-point messages only"};
    return elements(count) * type.bytes;
}

}  // namespace offpath::region_mpi
