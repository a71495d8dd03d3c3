// MPI_Recv, MPI_Irecv, and what both need. A short receive is posted with the host's MPI as it is; what came
// is looked at when it is done.
#include <mpi.h>
#include <offpath/types.h>

#include <array>
#include <cstring>

#include "communicators.h"
#include "lock.h"
#include "moving.h"

namespace offpath::mpi::p2p {
namespace {

int class_of(int error) {
    int its_class = MPI_SUCCESS;
    PMPI_Error_class(error, &its_class);
    return its_class;
}

int receive_on_host(const Arguments& a, MPI_Status* status) {
    if (!must_attend()) return PMPI_Recv(a.buffer, a.count, a.type, a.peer, a.tag, a.comm, status);
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = PMPI_Irecv(a.buffer, a.count, a.type, a.peer, a.tag, a.comm, &request);
    return error == MPI_SUCCESS ? wait_for_host(&request, status) : error;
}

// With no more room than a header needs: to memory of ours.
int receive_shorter(const Arguments& a, Team& team, Pairs& pairs, MPI_Status* status) {
    const TypeUse use = use_type(a.type, a.buffer);
    if (!use.usable) return receive_on_host(a, status);  // which says so
    const std::size_t capacity = static_cast<std::size_t>(a.count) * use.bytes;
    std::array<char, short_landing_bytes> landing;
    MPI_Status own;
    const int error = PMPI_Recv(landing.data(), short_landing_bytes, MPI_PACKED, a.peer, a.tag, a.comm, &own);
    if (error == MPI_SUCCESS && use.contiguous()) {
        const std::size_t bytes = received_bytes(own);
        if (bytes != header_bytes && bytes <= capacity) {
            if (bytes > 0) std::memcpy(a.buffer, landing.data(), bytes);
            if (pairs.takes_part(own.MPI_SOURCE)) pairs.received.next(own.MPI_SOURCE, own.MPI_TAG);
            copy_status(own, status);
            return MPI_SUCCESS;
        }
    }
    if (error != MPI_SUCCESS && class_of(error) != MPI_ERR_TRUNCATE) return error;
    return wait_for(received_by_host(a, use, team, pairs, own, landing.data(), error), status);
}

// Only one thread, nothing to look after: the host's own receive.
int receive_short(const Arguments& a, std::size_t capacity, Team& team, Pairs& pairs, MPI_Status* status) {
    MPI_Status own;
    if (capacity <= header_bytes) return receive_shorter(a, team, pairs, status);
    const int error = PMPI_Recv(a.buffer, a.count, a.type, a.peer, a.tag, a.comm, &own);
    const std::size_t bytes = error == MPI_SUCCESS ? received_bytes(own) : header_bytes;
    if (bytes != header_bytes && bytes <= capacity) {
        if (pairs.takes_part(own.MPI_SOURCE)) pairs.received.next(own.MPI_SOURCE, own.MPI_TAG);
        copy_status(own, status);
        return MPI_SUCCESS;
    }
    if (error != MPI_SUCCESS && class_of(error) != MPI_ERR_TRUNCATE) return error;
    return wait_for(received_by_host(a, use_type(a.type, a.buffer), team, pairs, own, nullptr, error),
                    status);
}

}  // namespace

int receive_now(const Arguments& a, MPI_Request* request, bool awaited) {
    const InCall in_call;
    Team* team = nullptr;
    Pairs* pairs = nullptr;
    const auto on_host = [&] {
        return PMPI_Irecv(a.buffer, a.count, a.type, a.peer, a.tag, a.comm, request);
    };
    if (request == nullptr || !may_get_header(a, team, pairs)) return on_host();
    const TypeUse use = use_type(a.type, a.buffer);
    if (!use.usable) return on_host();
    const auto guard = lock();
    Parcel* parcel = nullptr;
    const int error = start_receive(a, use, *team, *pairs, awaited, &parcel, request);
    if (error == MPI_SUCCESS && parcel != nullptr) *request = parcel->handle;
    return error;
}

int complete(MPI_Request* request, MPI_Status* status) {
    Parcel* parcel = nullptr;
    if (any_registered()) {
        const auto guard = lock();
        parcel = find_parcel(*request);
    }
    if (parcel == nullptr) return wait_for_host(request, status);
    *request = MPI_REQUEST_NULL;
    stay(*parcel);
    return wait_for(*parcel, status);
}

}  // namespace offpath::mpi::p2p

using namespace offpath::mpi;
using namespace offpath::mpi::p2p;

extern "C" {

OFFPATH_API int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                          MPI_Request* request) {
    return receive_now({buffer, count, type, source, tag, comm}, request);
}

OFFPATH_API int MPI_Recv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                         MPI_Status* status) {
    const InCall in_call;
    const Arguments a{buffer, count, type, source, tag, comm};
    Team* team = nullptr;
    Pairs* pairs = nullptr;
    if (!may_get_header(a, team, pairs)) return receive_on_host(a, status);
    const std::size_t capacity = static_cast<std::size_t>(count) * type_bytes(type);
    if (capacity < runtime().settings.p2p.min_bytes && !runtime().threads && !must_attend() &&
        pairs->extracted.empty())
        return receive_short(a, capacity, *team, *pairs, status);
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = receive_now(a, &request, true);
    return error == MPI_SUCCESS ? complete(&request, status) : error;
}

}  // extern "C"
