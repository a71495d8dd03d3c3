// MPI_Recv, MPI_Irecv, and their common code. A short receive is posted with the host's MPI unchanged, and
// what arrived is examined when it is done.
#include <mpi.h>
#include <offpath/types.h>

#include <array>
#include <cstring>

#include "base/clock.h"
#include "communicators/communicators.h"
#include "datatypes/known_types.h"
#include "devices/devices.h"
#include "p2p/lock.h"
#include "p2p/parcel_progress.h"
#include "p2p/settings.h"
#include "p2p/short_receives.h"
#include "p2p/waited_messages.h"

namespace offpath::mpi::p2p {
namespace {

bool is_from_device(const Team* team) {
    return team != nullptr && team->devices.load(std::memory_order_relaxed) != nullptr;
}
devices::Arguments from_device(const char* call, const Arguments& a) {
    return {call, a.buffer, a.count, a.type, a.peer, a.tag, a.comm};
}

int class_of(int error) {
    int its_class = MPI_SUCCESS;
    PMPI_Error_class(error, &its_class);
    return its_class;
}

int receive_on_host(const Arguments& a, MPI_Status* status) {
    if (!must_poll()) return PMPI_Recv(a.buffer, a.count, a.type, a.peer, a.tag, a.comm, status);
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = PMPI_Irecv(a.buffer, a.count, a.type, a.peer, a.tag, a.comm, &request);
    return error == MPI_SUCCESS ? wait_for_host(&request, status) : error;
}

// For a receive with no more room than a header needs: it uses memory of the front end.
int receive_shorter(const Arguments& a, Team& team, Pairs& pairs, MPI_Status* status) {
    const TypeUse use = use_type(a.type, a.buffer);
    if (!use.usable) return receive_on_host(a, status);  // it reports the error
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

// Whether a large message that only the host's MPI moves is expected, while nothing else is outstanding.
bool is_waited(const Arguments& a, Pairs& pairs) {
    return may_be_the_hosts_call() && is_exact(a.peer, a.tag) && pairs.wild.empty() &&
           pairs.extracted.empty() && comes_by_host(pairs, a.peer, a.tag);
}

// Uses the host's own receive. There must be only one thread, and nothing else to progress. `waited`: the
// receive is a large one, for which is_waited() holds.
int receive_in_the_hosts_call(const Arguments& a, std::size_t capacity, Team& team, Pairs& pairs,
                              MPI_Status* status, bool waited) {
    MPI_Status own;
    const std::uint64_t began_ns = waited ? now_ns() : 0;
    const int error = PMPI_Recv(a.buffer, a.count, a.type, a.peer, a.tag, a.comm, &own);
    const std::size_t bytes = error == MPI_SUCCESS ? received_bytes(own) : header_bytes;
    if (bytes != header_bytes && bytes <= capacity) {
        if (pairs.takes_part(own.MPI_SOURCE)) pairs.received.next(own.MPI_SOURCE, own.MPI_TAG);
        if (bytes >= job_settings.min_bytes && waited)
            received_in_the_hosts_call(pairs, a.peer, a.tag, now_ns() - began_ns);
        copy_status(own, status);
        return MPI_SUCCESS;
    }
    if (error != MPI_SUCCESS && class_of(error) != MPI_ERR_TRUNCATE) return error;
    Parcel& parcel = received_by_host(a, use_type(a.type, a.buffer), team, pairs, own, nullptr, error);
    if (waited) posted(parcel);
    return wait_for(parcel, status);
}

}  // namespace

int receive_now(const Arguments& a, MPI_Request* request, bool awaited) {
    const InCall in_call;
    Team* team = nullptr;
    Pairs* pairs = nullptr;
    const auto on_host = [&] {
        return PMPI_Irecv(a.buffer, a.count, a.type, a.peer, a.tag, a.comm, request);
    };
    if (request == nullptr || !may_get_header(a, team, pairs)) {
        if (request != nullptr && is_from_device(team))
            return devices::start_receive(*team, from_device("MPI_Irecv", a), request);
        return on_host();
    }
    if (short_receives_are_used) {
        const TypeUse elements = use_known_type(a.type);
        const std::size_t capacity = static_cast<std::size_t>(a.count) * elements.bytes;
        if (elements.usable && is_short(a, capacity, *pairs))
            return start_short(a, capacity, elements.layout, *team, *pairs, request);
    }
    const TypeUse use = use_type(a.type, a.buffer);
    if (!use.usable) return on_host();
    const auto guard = lock();
    Parcel* parcel = nullptr;
    const int error = start_receive(a, use, *team, *pairs, awaited, &parcel, request);
    if (error == MPI_SUCCESS && parcel != nullptr) *request = parcel->handle;
    return error;
}

int complete(MPI_Request* request, MPI_Status* status) {
    if (int result = MPI_SUCCESS; wait_for_short(request, status, &result)) return result;
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

namespace {

int receive(const Arguments& a, MPI_Status* status) {
    const InCall in_call;
    Team* team = nullptr;
    Pairs* pairs = nullptr;
    if (!may_get_header(a, team, pairs)) {
        if (is_from_device(team)) return devices::receive(*team, from_device("MPI_Recv", a), status);
        return receive_on_host(a, status);
    }
    const std::size_t capacity = static_cast<std::size_t>(a.count) * bytes_of_type(a.type);
    if (capacity < job_settings.min_bytes && !runtime().threads && !must_poll() && pairs->extracted.empty())
        return capacity <= header_bytes
                   ? receive_shorter(a, *team, *pairs, status)
                   : receive_in_the_hosts_call(a, capacity, *team, *pairs, status, false);
    if (is_waited(a, *pairs) && use_known_type(a.type).usable)
        return receive_in_the_hosts_call(a, capacity, *team, *pairs, status, true);
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = receive_now(a, &request, true);
    return error == MPI_SUCCESS ? complete(&request, status) : error;
}

}  // namespace

// Out of line, as for sends: the host's call then needs no stack frame of ours.
[[gnu::noinline]] static int look_and_Irecv(void* buffer, int count, MPI_Datatype type, int source, int tag,
                                            MPI_Comm comm, MPI_Request* request) {
    return receive_now({buffer, count, type, source, tag, comm}, request);
}

[[gnu::noinline]] static int look_and_Recv(void* buffer, int count, MPI_Datatype type, int source, int tag,
                                           MPI_Comm comm, MPI_Status* status) {
    return receive({buffer, count, type, source, tag, comm}, status);
}

extern "C" {

OFFPATH_API int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                          MPI_Request* request) {
    return messages_are_the_hosts() ? PMPI_Irecv(buffer, count, type, source, tag, comm, request)
                                    : look_and_Irecv(buffer, count, type, source, tag, comm, request);
}

OFFPATH_API int MPI_Recv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                         MPI_Status* status) {
    return waited_messages_are_the_hosts() ? PMPI_Recv(buffer, count, type, source, tag, comm, status)
                                           : look_and_Recv(buffer, count, type, source, tag, comm, status);
}

}  // extern "C"

}  // namespace offpath::mpi::p2p
