// MPI's sends. Where no communicator has messages for the device, a send costs a few loads more. Between
// ranks that do not take part, it also costs a look at the communicator. Between ranks that take part, a send
// that stays on the host's path is counted in addition.
#include <mpi.h>
#include <offpath/types.h>

#include "base/clock.h"
#include "communicators/communicators.h"
#include "datatypes/known_types.h"
#include "devices/devices.h"
#include "p2p/counts.h"
#include "p2p/lock.h"
#include "p2p/neighbours.h"
#include "p2p/parcel_progress.h"

namespace offpath::mpi::p2p {
namespace {

using Blocking = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
using Starting = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);

Blocking blocking_call(Mode mode) {
    static constexpr Blocking calls[] = {PMPI_Send, PMPI_Ssend, PMPI_Rsend, PMPI_Bsend};
    return calls[static_cast<int>(mode)];
}
Starting starting_call(Mode mode) {
    static constexpr Starting calls[] = {PMPI_Isend, PMPI_Issend, PMPI_Irsend, PMPI_Ibsend};
    return calls[static_cast<int>(mode)];
}

int start_on_host(const Arguments& a, Mode mode, MPI_Request* request) {
    return starting_call(mode)(a.buffer, a.count, a.type, a.peer, a.tag, a.comm, request);
}

int start_counted(const Arguments& a, Mode mode, Pairs& pairs, MPI_Request* request) {
    if (!runtime().threads) {
        const int error = start_on_host(a, mode, request);
        if (error == MPI_SUCCESS) pairs.sent.next(a.peer, a.tag);
        return error;
    }
    const auto guard = lock();
    const bool numbered = pairs.sent.next(a.peer, a.tag).has_value();
    const int error = start_on_host(a, mode, request);
    if (error != MPI_SUCCESS && numbered) pairs.sent.undo(a.peer, a.tag);
    return error;
}

int send_counted(const Arguments& a, Mode mode, Pairs& pairs) {
    if (mode != Mode::buffered && (runtime().threads || must_poll())) {
        MPI_Request request = MPI_REQUEST_NULL;
        const int error = start_counted(a, mode, pairs, &request);
        return error == MPI_SUCCESS ? wait_for_host(&request, MPI_STATUS_IGNORE) : error;
    }
    if (!runtime().threads) {
        const int error = blocking_call(mode)(a.buffer, a.count, a.type, a.peer, a.tag, a.comm);
        if (error == MPI_SUCCESS) pairs.sent.next(a.peer, a.tag);
        return error;
    }
    const auto guard = lock();
    const bool numbered = pairs.sent.next(a.peer, a.tag).has_value();
    const int error = blocking_call(mode)(a.buffer, a.count, a.type, a.peer, a.tag, a.comm);
    if (error != MPI_SUCCESS && numbered) pairs.sent.undo(a.peer, a.tag);
    return error;
}

std::size_t bytes_of(const Arguments& a) {
    return static_cast<std::size_t>(a.count) * bytes_of_type(a.type);
}

// A large message that is the host's, while nothing else is outstanding.
int send_waited(const Arguments& a, Mode mode, Pairs& pairs) {
    const std::uint64_t began_ns = now_ns();
    const int error = send_counted(a, mode, pairs);
    if (error != MPI_SUCCESS) return error;
    count_kept_by_host(only_waits(pairs, a.peer, a.tag));
    sent_in_the_hosts_call(pairs, a.peer, a.tag, bytes_of(a), now_ns() - began_ns);
    return MPI_SUCCESS;
}

// Not for buffered sends: their memory belongs to the front end.
bool goes_by_host(const Arguments& a, std::size_t bytes, Mode mode, Pairs& pairs) {
    return watches_waits() && mode != Mode::buffered && bytes != header_bytes &&
           is_the_hosts(pairs, a.peer, a.tag, bytes);
}

int start_with_header(const Arguments& a, const TypeUse& use, Mode mode, Team& team, Pairs& pairs,
                      Parcel** parcel) {
    bool ours = false;
    auto guard = lock();
    const int error = start_send(a, use, mode, team, pairs, parcel, &ours);
    if (error == MPI_SUCCESS && mode == Mode::buffered) forsake(**parcel);
    guard.unlock();
    if (error != MPI_SUCCESS && ours) PMPI_Comm_call_errhandler(a.comm, error);
    return error;
}

bool is_to_device(const Team* team) {
    return team != nullptr && team->devices.load(std::memory_order_relaxed) != nullptr;
}

// `request` null: waits.
[[gnu::noinline]] int send_to_device(Team& team, const Arguments& a, Mode mode, MPI_Request* request) {
    static constexpr const char* names[] = {"MPI_Send", "MPI_Ssend", "MPI_Rsend", "MPI_Bsend"};
    const char* const name = names[static_cast<int>(mode)];
    if (mode == Mode::synchronous) return devices::unsupported(name, a.comm);
    const devices::Arguments message{name, a.buffer, a.count, a.type, a.peer, a.tag, a.comm};
    const bool copies = mode == Mode::buffered;
    return request == nullptr ? devices::send(team, message, copies)
                              : devices::start_send(team, message, request, copies);
}

int send(const Arguments& a, Mode mode) {
    const InCall in_call;
    Team* team = nullptr;
    Pairs* pairs = nullptr;
    if (!takes_part(a, team, pairs)) {
        if (is_to_device(team)) return send_to_device(*team, a, mode, nullptr);
        if (!must_poll() || mode == Mode::buffered)
            return blocking_call(mode)(a.buffer, a.count, a.type, a.peer, a.tag, a.comm);
        MPI_Request request = MPI_REQUEST_NULL;
        const int error = start_on_host(a, mode, &request);
        return error == MPI_SUCCESS ? wait_for_host(&request, MPI_STATUS_IGNORE) : error;
    }
    const std::size_t bytes = bytes_of(a);
    if (!goes_with_header(bytes)) return send_counted(a, mode, *pairs);
    const TypeUse use = use_type(a.type, a.buffer);
    if (!use.usable) return blocking_call(mode)(a.buffer, a.count, a.type, a.peer, a.tag, a.comm);
    const bool by_host = goes_by_host(a, bytes, mode, *pairs);
    if (by_host && may_be_the_hosts_call()) return send_waited(a, mode, *pairs);
    Parcel* parcel = nullptr;
    const int error = by_host ? start_send_by_host(a, bytes, mode, *team, *pairs, &parcel)
                              : start_with_header(a, use, mode, *team, *pairs, &parcel);
    if (error != MPI_SUCCESS || mode == Mode::buffered) return error;
    stay(*parcel);
    return wait_for(*parcel, MPI_STATUS_IGNORE);
}

}  // namespace

int send_now(const Arguments& a, Mode mode, MPI_Request* request) {
    const InCall in_call;
    Team* team = nullptr;
    Pairs* pairs = nullptr;
    if (request == nullptr || !takes_part(a, team, pairs)) {
        if (request != nullptr && is_to_device(team)) return send_to_device(*team, a, mode, request);
        const int error = start_on_host(a, mode, request);
        if (error == MPI_SUCCESS) sent_to_neighbour(a);
        return error;
    }
    const std::size_t bytes = bytes_of(a);
    if (!goes_with_header(bytes)) return start_counted(a, mode, *pairs, request);
    const TypeUse use = use_type(a.type, a.buffer);
    if (!use.usable) return start_on_host(a, mode, request);
    Parcel* parcel = nullptr;
    const int error = goes_by_host(a, bytes, mode, *pairs)
                          ? start_send_by_host(a, bytes, mode, *team, *pairs, &parcel)
                          : start_with_header(a, use, mode, *team, *pairs, &parcel);
    if (error != MPI_SUCCESS) return error;
    // A buffered send is done for its caller, so its request is done, too.
    if (mode == Mode::buffered) return PMPI_Isend(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, a.comm, request);
    *request = parcel->handle;
    return MPI_SUCCESS;
}

namespace {

Arguments make(const void* buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
    return {const_cast<void*>(buffer), count, type, dest, tag, comm};
}

}  // namespace

// The code for sends that may involve the device is out of line: the host's call then needs no stack frame of
// ours.
#define SENDS(name, mode)                                                                                    \
    [[gnu::noinline]] static int look_and_##name(const void* buffer, int count, MPI_Datatype type, int dest, \
                                                 int tag, MPI_Comm comm) {                                   \
        return send(make(buffer, count, type, dest, tag, comm), mode);                                       \
    }                                                                                                        \
    extern "C" OFFPATH_API int MPI_##name(const void* buffer, int count, MPI_Datatype type, int dest,        \
                                          int tag, MPI_Comm comm) {                                          \
        return waited_messages_are_the_hosts() ? PMPI_##name(buffer, count, type, dest, tag, comm)           \
                                               : look_and_##name(buffer, count, type, dest, tag, comm);      \
    }
#define STARTS_SEND(name, mode)                                                                              \
    [[gnu::noinline]] static int look_and_##name(const void* buffer, int count, MPI_Datatype type, int dest, \
                                                 int tag, MPI_Comm comm, MPI_Request* request) {             \
        return send_now(make(buffer, count, type, dest, tag, comm), mode, request);                          \
    }                                                                                                        \
    extern "C" OFFPATH_API int MPI_##name(const void* buffer, int count, MPI_Datatype type, int dest,        \
                                          int tag, MPI_Comm comm, MPI_Request* request) {                    \
        return messages_are_the_hosts() && count < least_counted                                             \
                   ? PMPI_##name(buffer, count, type, dest, tag, comm, request)                              \
                   : look_and_##name(buffer, count, type, dest, tag, comm, request);                         \
    }

SENDS(Send, Mode::standard)
SENDS(Ssend, Mode::synchronous)
SENDS(Rsend, Mode::ready)
SENDS(Bsend, Mode::buffered)
STARTS_SEND(Isend, Mode::standard)
STARTS_SEND(Issend, Mode::synchronous)
STARTS_SEND(Irsend, Mode::ready)
STARTS_SEND(Ibsend, Mode::buffered)

}  // namespace offpath::mpi::p2p
