// Turns the user's buffers into bytes for the device: the buffer itself where the datatype allows it,
// otherwise staging memory that belongs to the operation. A null result means out of memory, or that the
// host's MPI refused to pack.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "offloaded_requests.h"

namespace offpath::mpi {

// The bytes of `count` elements to send.
const void* bytes_to_send(OffloadedRequest& operation, const TypeUse& type, const void* elements,
                          std::size_t count);
// A copy of `count` elements, for in-place operations that overwrite what they send.
const void* copy_to_send(OffloadedRequest& operation, const TypeUse& type, const void* elements,
                         std::size_t count);
// The destination of `count` elements; unpacked at completion.
void* bytes_to_receive(OffloadedRequest& operation, const TypeUse& type, void* elements, std::size_t count);

// Packs or copies, as the type requires.
bool copy_packed(const TypeUse& type, const void* elements, std::size_t count, void* packed);

// Registers `count` elements, which arrive at offset `packed_at` of the receive staging memory, for
// unpacking.
void unpack_later(OffloadedRequest& operation, const TypeUse& type, void* elements, std::size_t count,
                  std::size_t packed_at);

// A reduction's operand of `bytes` bytes, where the device can read it. Operands in memory of a GPU are
// copied.
const void* operand_to_send(OffloadedRequest& operation, const void* operand, std::size_t bytes);
// The destination of the result, which in place first holds an operand. Sizes in bytes.
void* place_of_result(OffloadedRequest& operation, void* result, std::size_t operand_bytes,
                      std::size_t result_bytes);

// In place, a rank's own block is already in the receive buffer. If `recv` is staging memory the block is
// packed into it, because all of that memory is unpacked later.
bool put_own_block(const TypeUse& type, const void* elements, std::size_t count, void* recv,
                   std::size_t packed_at);

}  // namespace offpath::mpi
