// The bytes that a finished receive got, from its status. This is asked after every receive between ranks
// that take part, so it reads the field of the host's MPI instead of calling it, where that field is known.
//
// The fields are not part of MPI's interface. open_received_bytes() therefore compares them with what the
// host's MPI says about a few sizes, and if they differ, the host's MPI is asked every time.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace offpath::mpi::p2p {

inline bool status_field_is_right = false;  // written in MPI_Init

// Called at the beginning of the attachment.
void open_received_bytes();

std::size_t asked_received_bytes(const MPI_Status& status);

inline std::size_t received_bytes_field([[maybe_unused]] const MPI_Status& status) {
#if defined(OPEN_MPI)
    return status._ucount;
#elif defined(MPICH_NUMVERSION)
    const std::uint64_t high = static_cast<std::uint32_t>(status.count_hi_and_cancelled) >> 1;
    return high << 32 | static_cast<std::uint32_t>(status.count_lo);
#else
    return ~std::size_t{0};
#endif
}

inline std::size_t received_bytes(const MPI_Status& status) {
    return status_field_is_right ? received_bytes_field(status) : asked_received_bytes(status);
}

}  // namespace offpath::mpi::p2p
