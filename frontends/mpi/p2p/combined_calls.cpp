// MPI_Sendrecv, MPI_Sendrecv_replace and their non-blocking forms: a receive and a send.
#include <mpi.h>
#include <offpath/types.h>

#include <algorithm>
#include <climits>

#include "buffers.h"
#include "calls/large.h"
#include "communicators.h"
#include "joined.h"
#include "lock.h"
#include "moving.h"

using namespace offpath::mpi;
using namespace offpath::mpi::p2p;

namespace {

// Starts both. An error: neither is under way.
int start(const Arguments& out, const Arguments& in, MPI_Request* receive, MPI_Request* send) {
    int error = receive_now(in, receive);
    if (error != MPI_SUCCESS) return error;
    error = send_now(out, Mode::standard, send);
    if (error == MPI_SUCCESS) return MPI_SUCCESS;
    MPI_Cancel(receive);
    complete(receive, MPI_STATUS_IGNORE);
    return error;
}

int both(const Arguments& out, const Arguments& in, MPI_Status* status) {
    MPI_Request receive = MPI_REQUEST_NULL;
    MPI_Request send = MPI_REQUEST_NULL;
    if (const int error = start(out, in, &receive, &send); error != MPI_SUCCESS) return error;
    const int received = complete(&receive, status);
    const int sent = complete(&send, MPI_STATUS_IGNORE);
    return received != MPI_SUCCESS ? received : sent;
}

// Neither end may meet a header, so it is the host's.
bool no_header(const Arguments& out, const Arguments& in) {
    Team* team = nullptr;
    Pairs* pairs = nullptr;
    return !takes_part(out, team, pairs) && !may_get_header(in, team, pairs);
}
bool all_on_host(const Arguments& out, const Arguments& in) {
    return !must_attend() && no_header(out, in);
}

// Whether the arguments are such that the message can be copied; else the host's MPI is to say what is wrong.
bool is_usable(const Arguments& out) {
    return out.count >= 0 && out.type != MPI_DATATYPE_NULL && use_type(out.type).usable;
}

// What is sent from, as the buffer is received to. Its type is needed no more once the send has started.
struct Copy {
    StagingBlock bytes;
    MPI_Datatype all = MPI_DATATYPE_NULL;  // the bytes, where the host's MPI cannot count them

    Copy() = default;
    ~Copy() {
        if (all != MPI_DATATYPE_NULL) free_type(&all);
    }
    Copy(const Copy&) = delete;
    Copy& operator=(const Copy&) = delete;

    // Makes `out` send a copy. An error has been reported.
    int make(Arguments& out) {
        const TypeUse use = use_type(out.type, out.buffer);
        const std::size_t size = static_cast<std::size_t>(out.count) * use.bytes;
        bytes = acquire_staging(std::max<std::size_t>(size, 1));
        if (bytes.address == nullptr ||
            !copy_packed(use, out.buffer, static_cast<std::size_t>(out.count), bytes.address)) {
            release_staging(bytes);
            return report(out, MPI_ERR_NO_MEM);
        }
        out.buffer = bytes.address;
        if (use.contiguous()) return MPI_SUCCESS;
        if (size <= INT_MAX) {
            out.count = static_cast<int>(size);
            out.type = MPI_PACKED;
            return MPI_SUCCESS;
        }
        out.type = all = type_of_many(static_cast<MPI_Count>(size), MPI_BYTE);
        out.count = 1;
        return MPI_SUCCESS;
    }

    static int report(const Arguments& out, int error) {
        PMPI_Comm_call_errhandler(out.comm, error);
        return error;
    }
};

#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
// `sent_from` is given back when both are done; not with an error.
int start_both(const Arguments& out, const Arguments& in, const StagingBlock& sent_from,
               MPI_Request* request) {
    MPI_Request receive = MPI_REQUEST_NULL;
    MPI_Request send = MPI_REQUEST_NULL;
    const int error = start(out, in, &receive, &send);
    return error == MPI_SUCCESS ? join(receive, send, sent_from, request) : error;
}
#endif

}  // namespace

extern "C" {

OFFPATH_API int MPI_Sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                             void* recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
                             MPI_Comm comm, MPI_Status* status) {
    const presence::Inside inside;
    const Arguments out{const_cast<void*>(sendbuf), sendcount, sendtype, dest, sendtag, comm};
    const Arguments in{recvbuf, recvcount, recvtype, source, recvtag, comm};
    if (all_on_host(out, in))
        return PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
                             source, recvtag, comm, status);
    return both(out, in, status);
}

OFFPATH_API int MPI_Sendrecv_replace(void* buffer, int count, MPI_Datatype type, int dest, int sendtag,
                                     int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
    const presence::Inside inside;
    const Arguments in{buffer, count, type, source, recvtag, comm};
    Arguments out{buffer, count, type, dest, sendtag, comm};
    if (all_on_host(out, in) || !is_usable(out))
        return PMPI_Sendrecv_replace(buffer, count, type, dest, sendtag, source, recvtag, comm, status);
    Copy copy;
    int error = copy.make(out);
    if (error == MPI_SUCCESS) error = both(out, in, status);
    release_staging(copy.bytes);
    return error;
}

#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
OFFPATH_API int MPI_Isendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest,
                              int sendtag, void* recvbuf, int recvcount, MPI_Datatype recvtype, int source,
                              int recvtag, MPI_Comm comm, MPI_Request* request) {
    const Arguments out{const_cast<void*>(sendbuf), sendcount, sendtype, dest, sendtag, comm};
    const Arguments in{recvbuf, recvcount, recvtype, source, recvtag, comm};
    if (no_header(out, in) || request == nullptr)
        return PMPI_Isendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
                              source, recvtag, comm, request);
    StagingBlock none;
    return start_both(out, in, none, request);
}

OFFPATH_API int MPI_Isendrecv_replace(void* buffer, int count, MPI_Datatype type, int dest, int sendtag,
                                      int source, int recvtag, MPI_Comm comm, MPI_Request* request) {
    const Arguments in{buffer, count, type, source, recvtag, comm};
    Arguments out{buffer, count, type, dest, sendtag, comm};
    if (no_header(out, in) || !is_usable(out) || request == nullptr)
        return PMPI_Isendrecv_replace(buffer, count, type, dest, sendtag, source, recvtag, comm, request);
    Copy copy;
    int error = copy.make(out);
    if (error == MPI_SUCCESS) error = start_both(out, in, copy.bytes, request);
    if (error != MPI_SUCCESS) release_staging(copy.bytes);
    return error;
}
#endif

}  // extern "C"
