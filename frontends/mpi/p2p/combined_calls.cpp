// MPI_Sendrecv and MPI_Sendrecv_replace: a receive and a send.
#include <mpi.h>
#include <offpath/types.h>

#include "buffers.h"
#include "communicators.h"
#include "lock.h"
#include "moving.h"

using namespace offpath::mpi;
using namespace offpath::mpi::p2p;

namespace {

int both(const Arguments& out, const Arguments& in, MPI_Status* status) {
    MPI_Request receive = MPI_REQUEST_NULL;
    MPI_Request send = MPI_REQUEST_NULL;
    int error = receive_now(in, &receive);
    if (error != MPI_SUCCESS) return error;
    error = send_now(out, Mode::standard, &send);
    if (error != MPI_SUCCESS) {
        MPI_Cancel(&receive);
        complete(&receive, MPI_STATUS_IGNORE);
        return error;
    }
    const int received = complete(&receive, status);
    const int sent = complete(&send, MPI_STATUS_IGNORE);
    return received != MPI_SUCCESS ? received : sent;
}

// Neither end may meet a header, so it is the host's.
bool all_on_host(const Arguments& out, const Arguments& in) {
    Team* team = nullptr;
    Pairs* pairs = nullptr;
    return !must_attend() && !takes_part(out, team, pairs) && !may_get_header(in, team, pairs);
}

}  // namespace

extern "C" {

OFFPATH_API int MPI_Sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                             void* recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
                             MPI_Comm comm, MPI_Status* status) {
    const Arguments out{const_cast<void*>(sendbuf), sendcount, sendtype, dest, sendtag, comm};
    const Arguments in{recvbuf, recvcount, recvtype, source, recvtag, comm};
    if (all_on_host(out, in))
        return PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
                             source, recvtag, comm, status);
    return both(out, in, status);
}

OFFPATH_API int MPI_Sendrecv_replace(void* buffer, int count, MPI_Datatype type, int dest, int sendtag,
                                     int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
    const Arguments in{buffer, count, type, source, recvtag, comm};
    Arguments out{buffer, count, type, dest, sendtag, comm};
    const auto on_host = [&] {
        return PMPI_Sendrecv_replace(buffer, count, type, dest, sendtag, source, recvtag, comm, status);
    };
    if (all_on_host(out, in) || count < 0 || type == MPI_DATATYPE_NULL) return on_host();
    const TypeUse use = use_type(type);
    const std::size_t bytes = static_cast<std::size_t>(count) * use.bytes;
    // Beyond an int the host's MPI could not send the copy.
    if (!use.usable || (bytes > INT_MAX && !use.contiguous())) return on_host();
    StagingBlock copy = acquire_staging(bytes > 0 ? bytes : 1);
    if (copy.address == nullptr || !copy_packed(use, buffer, static_cast<std::size_t>(count), copy.address)) {
        PMPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
        return MPI_ERR_NO_MEM;
    }
    out.buffer = copy.address;
    if (!use.contiguous()) {
        out.count = static_cast<int>(bytes);
        out.type = MPI_PACKED;
    }
    const int error = both(out, in, status);
    release_staging(copy);
    return error;
}

}  // extern "C"
