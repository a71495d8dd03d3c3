// Collectives among the devices of ranks, blocking and not. The devices' proxies run them.
#include "openmp/mpi/communicators.h"
#include "openmp/mpi/datatypes.h"
#include "openmp/mpi/errors.h"
#include "openmp/mpi/requests.h"

#include <offpath/collectives.h>

#include <string>
#include <vector>

namespace offpath::region_mpi {
namespace {

template <typename Start>
int complete(const char* call, MPI_Comm comm, Start&& start) {
    return in_call(call, comm, [&](Communicator& communicator) {
        Request request;
        check(start(communicator, &request.handle), "start");
        finish(request);
    });
}

template <typename Start>
int begin(const char* call, MPI_Comm comm, MPI_Request* handle, Start&& start) {
    return in_call(call, comm, [&](Communicator& communicator) {
        auto request = std::make_unique<Request>();
        check(start(communicator, &request->handle), "start");
        *handle = handle_of(std::move(request));
    });
}

const void* origin(const void* send) {
    return send == MPI_IN_PLACE ? OFFPATH_IN_PLACE : send;
}

std::uint32_t root_in(const Communicator& communicator, int root) {
    if (root < 0 || static_cast<std::uint32_t>(root) >= communicator.size)
        throw MpiError{MPI_ERR_ROOT, "the root is " + std::to_string(root)};
    return static_cast<std::uint32_t>(root);
}

// The element type of a reduction that the device can compute.
offpath_type_t element_of(MPI_Datatype type, MPI_Op op) {
    const offpath_type_t element = type_of(type).element;
    const offpath_reduction_t reduction = reduction_of(op);
    if (element == offpath_type_t{} ||
        offpath_reduction_supported(context(), element, reduction) != OFFPATH_OK)
        throw MpiError{MPI_ERR_OP, "the device does not know this reduction for this datatype"};
    return element;
}

// Arrays of counts or displacements, in bytes. `size` is 0 where the array is not significant.
std::vector<std::size_t> in_bytes(const int* numbers, std::size_t size, MPI_Datatype type) {
    std::vector<std::size_t> bytes(size);
    for (std::size_t i = 0; i < size; ++i)
        bytes[i] = bytes_of(numbers[i], type);
    return bytes;
}

// The same with a datatype for each.
std::vector<std::size_t> in_bytes(const int* numbers, std::size_t size, const MPI_Datatype* types) {
    std::vector<std::size_t> bytes(size);
    for (std::size_t i = 0; i < size; ++i)
        bytes[i] = bytes_of(numbers[i], types[i]);
    return bytes;
}

std::size_t size_at_root(const Communicator& communicator, int root) {
    return root_in(communicator, root) == communicator.rank ? communicator.size : 0;
}

// The bytes of a rank's block: those of the side that is significant here.
std::size_t block(const void* send, int send_count, MPI_Datatype send_type, int receive_count,
                  MPI_Datatype receive_type) {
    return send == MPI_IN_PLACE ? bytes_of(receive_count, receive_type) : bytes_of(send_count, send_type);
}

}  // namespace
}  // namespace offpath::region_mpi

using namespace offpath::region_mpi;

// COLLECTIVE(Name, Iname, (parameters), body): the blocking call and the other. The body starts `request` in
// `team`.
#define OFFPATH_PARAMETERS(...) __VA_ARGS__
#define COLLECTIVE(name, iname, parameters, ...)                                                        \
    OFFPATH_EXPORT int MPI_##name(OFFPATH_PARAMETERS parameters, MPI_Comm comm) {                       \
        return complete("MPI_" #name, comm,                                                             \
                        [&](Communicator& team, offpath_request_h* request) { __VA_ARGS__ });           \
    }                                                                                                   \
    OFFPATH_EXPORT int MPI_##iname(OFFPATH_PARAMETERS parameters, MPI_Comm comm, MPI_Request* handle) { \
        return begin("MPI_" #iname, comm, handle,                                                       \
                     [&](Communicator& team, offpath_request_h* request) { __VA_ARGS__ });              \
    }

OFFPATH_EXPORT int MPI_Barrier(MPI_Comm comm) {
    return complete("MPI_Barrier", comm, [](Communicator& team, offpath_request_h* request) {
        return offpath_ibarrier(team.devices.get(), request);
    });
}

OFFPATH_EXPORT int MPI_Ibarrier(MPI_Comm comm, MPI_Request* handle) {
    return begin("MPI_Ibarrier", comm, handle, [](Communicator& team, offpath_request_h* request) {
        return offpath_ibarrier(team.devices.get(), request);
    });
}

COLLECTIVE(Bcast, Ibcast, (void* buffer, int count, MPI_Datatype type, int root),
           return offpath_ibcast(team.devices.get(), buffer, bytes_of(count, type), root_in(team, root),
                                 request);)

COLLECTIVE(Gather, Igather,
           (const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
            MPI_Datatype receive_type, int root),
           return offpath_igather(team.devices.get(), origin(send), receive,
                                  block(send, send_count, send_type, receive_count, receive_type),
                                  root_in(team, root), request);)

// In place, the root's side of a scatter is the receive buffer.
COLLECTIVE(Scatter, Iscatter,
           (const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
            MPI_Datatype receive_type, int root),
           const bool at_root = root_in(team, root) == team.rank;
           return offpath_iscatter(team.devices.get(), send,
                                   receive == MPI_IN_PLACE ? const_cast<void*>(OFFPATH_IN_PLACE) : receive,
                                   at_root ? bytes_of(send_count, send_type)
                                           : bytes_of(receive_count, receive_type),
                                   root_in(team, root), request);)

COLLECTIVE(Allgather, Iallgather,
           (const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
            MPI_Datatype receive_type),
           (void)send_count, (void)send_type;
           return offpath_iallgather(team.devices.get(), origin(send), receive,
                                     bytes_of(receive_count, receive_type), request);)

COLLECTIVE(Alltoall, Ialltoall,
           (const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
            MPI_Datatype receive_type),
           (void)send_count, (void)send_type;
           return offpath_ialltoall(team.devices.get(), origin(send), receive,
                                    bytes_of(receive_count, receive_type), request);)

COLLECTIVE(Gatherv, Igatherv,
           (const void* send, int send_count, MPI_Datatype send_type, void* receive,
            const int* receive_counts, const int* places, MPI_Datatype receive_type, int root),
           const std::size_t size = size_at_root(team, root);
           const auto bytes = in_bytes(receive_counts, size, receive_type);
           const auto offsets = in_bytes(places, size, receive_type);
           return offpath_igatherv(team.devices.get(), origin(send),
                                   send == MPI_IN_PLACE ? 0 : bytes_of(send_count, send_type), receive,
                                   bytes.data(), offsets.data(), root_in(team, root), request);)

COLLECTIVE(Scatterv, Iscatterv,
           (const void* send, const int* send_counts, const int* places, MPI_Datatype send_type,
            void* receive, int receive_count, MPI_Datatype receive_type, int root),
           const std::size_t size = size_at_root(team, root);
           const auto bytes = in_bytes(send_counts, size, send_type);
           const auto offsets = in_bytes(places, size, send_type);
           const bool in_place = receive == MPI_IN_PLACE;
           return offpath_iscatterv(team.devices.get(), send, bytes.data(), offsets.data(),
                                    in_place ? const_cast<void*>(OFFPATH_IN_PLACE) : receive,
                                    in_place ? 0 : bytes_of(receive_count, receive_type), root_in(team, root),
                                    request);)

COLLECTIVE(Allgatherv, Iallgatherv,
           (const void* send, int send_count, MPI_Datatype send_type, void* receive,
            const int* receive_counts, const int* places, MPI_Datatype receive_type),
           const auto bytes = in_bytes(receive_counts, team.size, receive_type);
           const auto offsets = in_bytes(places, team.size, receive_type); (void)send_count, (void)send_type;
           return offpath_iallgatherv(team.devices.get(), origin(send), receive, bytes.data(), offsets.data(),
                                      request);)

COLLECTIVE(Alltoallv, Ialltoallv,
           (const void* send, const int* send_counts, const int* send_places, MPI_Datatype send_type,
            void* receive, const int* receive_counts, const int* receive_places, MPI_Datatype receive_type),
           const std::size_t sends = send == MPI_IN_PLACE ? 0 : team.size;
           const auto send_bytes = in_bytes(send_counts, sends, send_type);
           const auto send_offsets = in_bytes(send_places, sends, send_type);
           const auto receive_bytes = in_bytes(receive_counts, team.size, receive_type);
           const auto receive_offsets = in_bytes(receive_places, team.size, receive_type);
           return offpath_ialltoallv(team.devices.get(), origin(send), send_bytes.data(), send_offsets.data(),
                                     receive, receive_bytes.data(), receive_offsets.data(), request);)

// Displacements are in bytes here.
COLLECTIVE(Alltoallw, Ialltoallw,
           (const void* send, const int* send_counts, const int* send_places, const MPI_Datatype* send_types,
            void* receive, const int* receive_counts, const int* receive_places,
            const MPI_Datatype* receive_types),
           const std::size_t sends = send == MPI_IN_PLACE ? 0 : team.size;
           const auto send_bytes = in_bytes(send_counts, sends, send_types);
           const auto send_offsets = in_bytes(send_places, sends, MPI_BYTE);
           const auto receive_bytes = in_bytes(receive_counts, team.size, receive_types);
           const auto receive_offsets = in_bytes(receive_places, team.size, MPI_BYTE);
           return offpath_ialltoallv(team.devices.get(), origin(send), send_bytes.data(), send_offsets.data(),
                                     receive, receive_bytes.data(), receive_offsets.data(), request);)

COLLECTIVE(Allreduce, Iallreduce, (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op),
           return offpath_iallreduce(team.devices.get(), origin(send), receive, elements(count),
                                     element_of(type, op), reduction_of(op), request);)

COLLECTIVE(Reduce, Ireduce,
           (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root),
           return offpath_ireduce(team.devices.get(), origin(send), receive, elements(count),
                                  element_of(type, op), reduction_of(op), root_in(team, root), request);)

COLLECTIVE(Scan, Iscan, (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op),
           return offpath_iscan(team.devices.get(), origin(send), receive, elements(count),
                                element_of(type, op), reduction_of(op), request);)

COLLECTIVE(Exscan, Iexscan, (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op),
           return offpath_iexscan(team.devices.get(), origin(send), receive, elements(count),
                                  element_of(type, op), reduction_of(op), request);)

COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block,
           (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op),
           return offpath_ireduce_scatter_block(team.devices.get(), origin(send), receive, elements(count),
                                                element_of(type, op), reduction_of(op), request);)

COLLECTIVE(Reduce_scatter, Ireduce_scatter,
           (const void* send, void* receive, const int* counts, MPI_Datatype type, MPI_Op op),
           std::vector<std::size_t> each(team.size);
           for (std::size_t i = 0; i < each.size(); ++i) each[i] = elements(counts[i]);
           return offpath_ireduce_scatter(team.devices.get(), origin(send), receive, each.data(),
                                          element_of(type, op), reduction_of(op), request);)
