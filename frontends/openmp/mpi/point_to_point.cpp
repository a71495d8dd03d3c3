// Messages between the devices of ranks, and between a device and a host. The proxies match them, by source
// and tag, while regions do something else.
#include "openmp/mpi/communicators.h"
#include "openmp/mpi/datatypes.h"
#include "openmp/mpi/ends.h"
#include "openmp/mpi/errors.h"
#include "openmp/mpi/requests.h"

#include <offpath/primitives.h>

#include <string>

namespace offpath::region_mpi {
namespace {

// A message up to this size is copied, and its send is done at once.
constexpr std::size_t copied_bytes = 4096;

using RequestPointer = std::unique_ptr<Request>;

RequestPointer over_at_once(int source) {
    auto request = std::make_unique<Request>();
    request->outcome.source = source;
    return request;
}

// `copies`: whatever its size.
RequestPointer start_send(Communicator& communicator, const void* buffer, int count, MPI_Datatype type,
                          int dest, int tag, bool copies = false) {
    const Type use = type_of_message(type);
    const std::size_t bytes = elements(count) * use.bytes;
    if (dest == MPI_PROC_NULL) return over_at_once(MPI_ANY_SOURCE);
    auto request = std::make_unique<Request>();
    request->done_at_once = bytes <= copied_bytes || copies;
    if (bytes > 0 && (request->done_at_once || !use.plain)) {
        request->copy = std::make_unique<std::byte[]>(bytes);
        use.layout->pack(buffer, elements(count), request->copy.get());
        buffer = request->copy.get();
    }
    const Destination to = destination_of(communicator, dest);
    check(offpath_send_offload(to.team, buffer, bytes, to.member, checked_tag(tag), &request->handle),
          "send");
    return request;
}

RequestPointer start_receive(Communicator& communicator, void* buffer, int count, MPI_Datatype type,
                             int source, int tag) {
    const Type use = type_of_message(type);
    const std::size_t bytes = elements(count) * use.bytes;
    if (source == MPI_PROC_NULL) return over_at_once(MPI_PROC_NULL);
    auto request = std::make_unique<Request>();
    request->receives = true;
    if (!use.plain && bytes > 0) {
        request->copy = std::make_unique<std::byte[]>(bytes);
        request->layout = use.layout;
        request->elements = buffer;
        request->room = bytes;
        buffer = request->copy.get();
    }
    const Sources from = sources_of(communicator, source);
    request->mixed = from.mixed;
    check(offpath_recv_masked(from.team, buffer, bytes, from.member, from.mask, tag_to_match(tag),
                              &request->handle),
          "receive");
    return request;
}

// A send of MPI_Send's kind: what is small is done when it is copied, so that two devices may send to each
// other before they receive.
void send_and_finish(RequestPointer request) {
    if (request->done_at_once)
        abandon(std::move(request));
    else
        finish(*request);
}

// An MPI_Isend whose payload is copied is done, too.
MPI_Request handle_of_send(RequestPointer request) {
    if (!request->done_at_once) return handle_of(std::move(request));
    abandon(std::move(request));
    return handle_of(over_at_once(MPI_ANY_SOURCE));
}

}  // namespace
}  // namespace offpath::region_mpi

using namespace offpath::region_mpi;

OFFPATH_EXPORT int MPI_Send(const void* buffer, int count, MPI_Datatype type, int dest, int tag,
                            MPI_Comm comm) {
    return in_call("MPI_Send", comm, [&](Communicator& communicator) {
        send_and_finish(start_send(communicator, buffer, count, type, dest, tag));
    });
}

OFFPATH_EXPORT int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int dest, int tag,
                             MPI_Comm comm, MPI_Request* request) {
    return in_call("MPI_Isend", comm, [&](Communicator& communicator) {
        *request = handle_of_send(start_send(communicator, buffer, count, type, dest, tag));
    });
}

OFFPATH_EXPORT int MPI_Recv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                            MPI_Status* status) {
    return in_call("MPI_Recv", comm, [&](Communicator& communicator) {
        fill(status, finish(*start_receive(communicator, buffer, count, type, source, tag)));
    });
}

OFFPATH_EXPORT int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                             MPI_Request* request) {
    return in_call("MPI_Irecv", comm, [&](Communicator& communicator) {
        *request = handle_of(start_receive(communicator, buffer, count, type, source, tag));
    });
}

OFFPATH_EXPORT int MPI_Sendrecv(const void* send, int send_count, MPI_Datatype send_type, int dest,
                                int send_tag, void* receive, int receive_count, MPI_Datatype receive_type,
                                int source, int receive_tag, MPI_Comm comm, MPI_Status* status) {
    return in_call("MPI_Sendrecv", comm, [&](Communicator& communicator) {
        auto receiving =
            start_receive(communicator, receive, receive_count, receive_type, source, receive_tag);
        send_and_finish(start_send(communicator, send, send_count, send_type, dest, send_tag));
        fill(status, finish(*receiving));
    });
}

OFFPATH_EXPORT int MPI_Sendrecv_replace(void* buffer, int count, MPI_Datatype type, int dest, int send_tag,
                                        int source, int receive_tag, MPI_Comm comm, MPI_Status* status) {
    return in_call("MPI_Sendrecv_replace", comm, [&](Communicator& communicator) {
        auto sending = start_send(communicator, buffer, count, type, dest, send_tag, true);
        auto receiving = start_receive(communicator, buffer, count, type, source, receive_tag);
        send_and_finish(std::move(sending));
        fill(status, finish(*receiving));
    });
}
