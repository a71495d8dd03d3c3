// The bytes of predefined datatypes, for calls that must not ask the host's MPI. Each thread keeps the types
// that it used last. Handles of predefined types never change their meaning; others are kept without their
// bytes.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "datatypes.h"

namespace offpath::mpi {

struct KnownType {
    static constexpr std::uint64_t unknown = ~std::uint64_t{0};
    MPI_Datatype type;
    std::uint64_t bytes;
    bool dense;  // predefined, and an array of it is its bytes in order
};
inline constexpr std::size_t known_types_bits = 3;
inline thread_local constinit std::array<KnownType, std::size_t{1} << known_types_bits> known_types{};

inline KnownType& known_type(MPI_Datatype type) {
    std::uint64_t bits = 0;  // MPI_Datatype is a pointer in some MPI libraries and an integer in others
    std::memcpy(&bits, &type, sizeof(MPI_Datatype));  // NOLINT(bugprone-sizeof-expression)
    return known_types[(bits * 0x9E3779B97F4A7C15U) >> (64 - known_types_bits)];
}

// The bytes of one element. `unknown`: ask type_bytes(). This costs a few loads.
inline std::uint64_t known_bytes(MPI_Datatype type) {
    const KnownType& known = known_type(type);
    return known.type == type ? known.bytes : KnownType::unknown;
}

// Lets known_bytes() answer from now on, if the type is predefined.
void remember_bytes(MPI_Datatype type);

// type_bytes() and use_type(), without asking the host's MPI about the predefined types that were used last.
// `type` must not be MPI_DATATYPE_NULL.
inline std::size_t bytes_of_type(MPI_Datatype type) {
    const std::uint64_t bytes = known_bytes(type);
    if (bytes != KnownType::unknown) return bytes;
    remember_bytes(type);
    return type_bytes(type);
}
inline TypeUse use_known_type(MPI_Datatype type) {
    const KnownType& known = known_type(type);
    if (known.type == type && known.dense)
        return {true, known.bytes, static_cast<MPI_Aint>(known.bytes), nullptr};
    remember_bytes(type);
    return use_type(type);
}

}  // namespace offpath::mpi
