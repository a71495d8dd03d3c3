// Turns the user's buffers into bytes for the device: the buffer itself where the datatype allows, else
// staging memory that belongs to the operation. A null result means out of memory, or that the host's MPI
// refused to pack.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "operations.h"

namespace offpath::mpi {

inline char* at(const void* buffer, MPI_Aint offset) {
    return const_cast<char*>(static_cast<const char*>(buffer)) + offset;
}

// `count` elements that are sent.
const void* bytes_to_send(Operation& operation, const TypeUse& type, const void* elements, std::size_t count);
// A copy of `count` elements, for in-place operations that overwrite what they send.
const void* copy_to_send(Operation& operation, const TypeUse& type, const void* elements, std::size_t count);
// Where `count` elements arrive; unpacked at completion.
void* bytes_to_receive(Operation& operation, const TypeUse& type, void* elements, std::size_t count);

// Packed or copied, whatever the type asks for.
bool copy_packed(const TypeUse& type, const void* elements, std::size_t count, void* packed);

// The arguments that every call shares; false sends the call to the host's MPI, which reports what is wrong.
inline bool plausible(MPI_Comm comm, const void* recv, MPI_Request* request) {
    return comm != MPI_COMM_NULL && recv != MPI_IN_PLACE && request != nullptr;
}

// The team if `comm` has one and `op` is on, and null otherwise, having counted why.
Team* team_for(MPI_Comm comm, Op op, std::uint64_t bytes);
// The same, and `bytes` reach the switch-over.
Team* team_if_large(MPI_Comm comm, Op op, std::uint64_t bytes);

}  // namespace offpath::mpi
