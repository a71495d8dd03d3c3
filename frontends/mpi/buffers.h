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

// `count` elements that arrive at offset `packed_at` of the receiving staging memory.
void unpack_later(Operation& operation, const TypeUse& type, void* elements, std::size_t count,
                  std::size_t packed_at);

// The operand of a reduction, of `bytes` bytes, where the device can read it: a copy of what a GPU has.
const void* operand_to_send(Operation& operation, const void* operand, std::size_t bytes);
// Where the result arrives, which in place holds an operand before. Counted in bytes.
void* place_of_result(Operation& operation, void* result, std::size_t operand_bytes,
                      std::size_t result_bytes);

// In place, a rank's own block already lies in the receive buffer; where `recv` is staging memory it is
// packed into it, since all of that is unpacked later.
bool put_own_block(const TypeUse& type, const void* elements, std::size_t count, void* recv,
                   std::size_t packed_at);

}  // namespace offpath::mpi
