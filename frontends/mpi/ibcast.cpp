#include "buffers.h"
#include "counters.h"
#include "runtime.h"

using namespace offpath::mpi;

extern "C" OFFPATH_API int MPI_Ibcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
                                      MPI_Request* request) {
    const auto on_host = [&] { return PMPI_Ibcast(buffer, count, datatype, root, comm, request); };
    if (!active() || !plausible(comm, buffer, request) || datatype == MPI_DATATYPE_NULL || count < 0)
        return on_host();
    const std::size_t bytes = static_cast<std::size_t>(count) * type_bytes(datatype);
    Team* team = team_if_large(comm, Op::ibcast, bytes);
    if (team == nullptr) return on_host();
    const TypeUse use = use_type(datatype);
    if (!use.usable || root < 0 || root >= team->size) return on_host();

    const bool is_root = root == team->rank;
    const auto elements = static_cast<std::size_t>(count);
    Operation& operation = acquire_operation(Op::ibcast, *team);
    void* data = is_root ? const_cast<void*>(bytes_to_send(operation, use, buffer, elements))
                         : bytes_to_receive(operation, use, buffer, elements);
    const offpath_status_t status = data == nullptr ? OFFPATH_ERR_MEMORY : start_on_device([&] {
        return offpath_ibcast(team->handle, data, bytes, static_cast<std::uint32_t>(root), &operation.device);
    });
    const int result = publish(operation, status, request);
    if (result == MPI_SUCCESS) count_offloaded(*team, Op::ibcast, is_root ? 0 : bytes, bytes);
    return result;
}
