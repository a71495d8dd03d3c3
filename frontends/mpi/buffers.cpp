#include "buffers.h"

#include <cstring>

#include "counters.h"
#include "runtime.h"

namespace offpath::mpi {

bool copy_packed(const TypeUse& type, const void* elements, std::size_t count, void* packed) {
    if (!type.contiguous()) return pack(*type.layout, elements, count, packed);
    if (count > 0) std::memcpy(packed, elements, count * type.bytes);
    return true;
}

const void* copy_to_send(Operation& operation, const TypeUse& type, const void* elements, std::size_t count) {
    operation.send_staging = acquire_staging(count * type.bytes);
    void* packed = operation.send_staging.address;
    return packed != nullptr && copy_packed(type, elements, count, packed) ? packed : nullptr;
}

const void* bytes_to_send(Operation& operation, const TypeUse& type, const void* elements,
                          std::size_t count) {
    return type.contiguous() ? elements : copy_to_send(operation, type, elements, count);
}

void* bytes_to_receive(Operation& operation, const TypeUse& type, void* elements, std::size_t count) {
    if (type.contiguous()) return elements;
    operation.recv_staging = acquire_staging(count * type.bytes);
    retain(*type.layout);
    operation.recv_layout = type.layout;
    operation.pieces.push_back({elements, count, 0});
    return operation.recv_staging.address;
}

Team* team_for(MPI_Comm comm, Op op, std::uint64_t bytes) {
    Team& team = find_team(comm);
    const bool on = runtime().settings.selection.enabled(op);
    if (on && team.handle != nullptr) return &team;
    count_on_host(team, comm, op, on ? team.reason : HostReason::switched_off, bytes);
    return nullptr;
}

Team* team_if_large(MPI_Comm comm, Op op, std::uint64_t bytes) {
    Team* team = team_for(comm, op, bytes);
    if (team == nullptr || bytes >= runtime().settings.selection.threshold(op)) return team;
    count_on_host(*team, comm, op, HostReason::small, bytes);
    return nullptr;
}

}  // namespace offpath::mpi
