// MPI_Sendrecv, MPI_Sendrecv_replace and their non-blocking forms: a receive and a send.
#include <mpi.h>
#include <offpath/types.h>

#include <algorithm>
#include <climits>

#include "communicators/communicators.h"
#include "datatypes/large_counts.h"
#include "devices/devices.h"
#include "p2p/lock.h"
#include "p2p/parcel_progress.h"
#include "p2p/sendrecv_requests.h"
#include "requests/buffers.h"

namespace offpath::mpi::p2p {
namespace {

// Starts both. After an error neither is outstanding.
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

// Whether neither end can meet a header. Then the host's MPI handles the call.
bool no_header(const Arguments& out, const Arguments& in) {
    Team* team = nullptr;
    Pairs* pairs = nullptr;
    return !takes_part(out, team, pairs) && !may_get_header(in, team, pairs);
}
bool all_on_host(const Arguments& out, const Arguments& in) {
    return !must_poll() && no_header(out, in);
}

int with_devices(const char* call, Team& team, const Arguments& out, const Arguments& in,
                 MPI_Status* status) {
    return devices::send_and_receive(team,
                                     {call, out.buffer, out.count, out.type, out.peer, out.tag, out.comm},
                                     {call, in.buffer, in.count, in.type, in.peer, in.tag, in.comm}, status);
}

// Whether the message can be copied with these arguments; otherwise the host's MPI must report the error.
bool is_usable(const Arguments& out) {
    return out.count >= 0 && out.type != MPI_DATATYPE_NULL && use_type(out.type).usable;
}

// The copy that is sent, because the receive overwrites the buffer. Its type is not needed once the send has
// started.
struct Copy {
    StagingBlock bytes;
    MPI_Datatype all = MPI_DATATYPE_NULL;  // all bytes, if the host's MPI cannot count them in an int

    Copy() = default;
    ~Copy() {
        if (all != MPI_DATATYPE_NULL) free_type(&all);
    }
    Copy(const Copy&) = delete;
    Copy& operator=(const Copy&) = delete;

    // Makes `out` send a copy. Has already reported the error that it returns.
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
// Releases `sent_from` when both are done, but not after an error.
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
    if (waited_messages_are_the_hosts())
        return PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
                             source, recvtag, comm, status);
    const presence::Inside inside;
    const Arguments out{const_cast<void*>(sendbuf), sendcount, sendtype, dest, sendtag, comm};
    const Arguments in{recvbuf, recvcount, recvtype, source, recvtag, comm};
    if (Team* const team = devices::team_of(comm))
        return with_devices("MPI_Sendrecv", *team, out, in, status);
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
    if (Team* const team = devices::team_of(comm))
        return with_devices("MPI_Sendrecv_replace", *team, out, in, status);
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
    if (devices::team_of(comm) != nullptr) return devices::unsupported("MPI_Isendrecv", comm);
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
    if (devices::team_of(comm) != nullptr) return devices::unsupported("MPI_Isendrecv_replace", comm);
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

}  // namespace offpath::mpi::p2p
