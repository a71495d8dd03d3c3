#include "buffers.h"

#include <algorithm>
#include <cstring>

#include "runtime/runtime.h"

namespace offpath::mpi {

bool copy_packed(const TypeUse& type, const void* elements, std::size_t count, void* packed) {
    if (!type.contiguous()) return pack(*type.layout, elements, count, packed);
    if (count > 0) std::memcpy(packed, elements, count * type.bytes);
    return true;
}

const void* copy_to_send(OffloadedRequest& operation, const TypeUse& type, const void* elements,
                         std::size_t count) {
    operation.send_staging = acquire_staging(count * type.bytes);
    void* packed = operation.send_staging.address;
    return packed != nullptr && copy_packed(type, elements, count, packed) ? packed : nullptr;
}

const void* bytes_to_send(OffloadedRequest& operation, const TypeUse& type, const void* elements,
                          std::size_t count) {
    return type.contiguous() ? elements : copy_to_send(operation, type, elements, count);
}

void* bytes_to_receive(OffloadedRequest& operation, const TypeUse& type, void* elements, std::size_t count) {
    if (type.contiguous()) return elements;
    operation.recv_staging = acquire_staging(count * type.bytes);
    unpack_later(operation, type, elements, count, 0);
    return operation.recv_staging.address;
}

void unpack_later(OffloadedRequest& operation, const TypeUse& type, void* elements, std::size_t count,
                  std::size_t packed_at) {
    if (type.contiguous()) {
        operation.pieces.push_back({elements, count * type.bytes, packed_at, nullptr});
        return;
    }
    retain(*type.layout);
    operation.pieces.push_back({elements, count, packed_at, type.layout});
}

const void* operand_to_send(OffloadedRequest& operation, const void* operand, std::size_t bytes) {
    const TypeUse use = use_type(MPI_BYTE, operand);
    return bytes == 0 ? operand : bytes_to_send(operation, use, operand, bytes);
}

void* place_of_result(OffloadedRequest& operation, void* result, std::size_t operand_bytes,
                      std::size_t result_bytes) {
    const std::size_t bytes = std::max(operand_bytes, result_bytes);
    const TypeUse use = use_type(MPI_BYTE, result);
    if (bytes == 0 || use.contiguous()) return result;
    operation.recv_staging = acquire_staging(bytes);
    void* place = operation.recv_staging.address;
    if (place == nullptr || !copy_packed(use, result, operand_bytes, place)) return nullptr;
    if (result_bytes > 0) unpack_later(operation, use, result, result_bytes, 0);
    return place;
}

bool put_own_block(const TypeUse& type, const void* elements, std::size_t count, void* recv,
                   std::size_t packed_at) {
    if (type.contiguous() || count == 0) return true;
    return pack(*type.layout, elements, count, at(recv, static_cast<MPI_Aint>(packed_at)));
}

}  // namespace offpath::mpi
