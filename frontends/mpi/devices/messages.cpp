#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "copied_sends.h"
#include "devices.h"
#include "key.h"
#include "requests/buffers.h"
#include "requests/offloaded_requests.h"
#include "runtime/backoff.h"
#include "runtime/mixed_teams.h"
#include "runtime/parts.h"
#include "summary.h"

namespace offpath::mpi::devices {
namespace {

using mixed_teams::End;

// A send of up to this size is done when it is copied.
constexpr std::size_t copied_bytes = 4096;

std::atomic<std::size_t> pending{0};  // with a request

std::string name_of_message(const OffloadedRequest& request) {
    return request.call;
}

int fail_message(const OffloadedRequest& request, offpath_status_t status) {
    const int error = status == OFFPATH_ERR_TRUNCATED ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER;
    const MPI_Comm comm = request.team->comm;
    return raise(comm != MPI_COMM_NULL ? comm : MPI_COMM_WORLD, request.call, error,
                 status == OFFPATH_ERR_TRUNCATED ? "the message is longer than the receive buffer"
                                                 : offpath_status_string(status));
}

void message_ended(OffloadedRequest& request) {
    pending.fetch_sub(1, std::memory_order_relaxed);
    if (!request.receives || offpath_request_message(request.device, &request.message) != OFFPATH_OK) return;
    count_received(request.message.bytes);
    request.message.source = mixed_teams::rank_of(request.message.source);
    for (Piece& piece : request.pieces) {
        const std::size_t each = piece.layout != nullptr ? piece.layout->bytes : 1;
        piece.count = std::min(piece.count, request.message.bytes / std::max<std::size_t>(each, 1));
    }
}

constexpr RequestKind message_request{name_of_message, fail_message, message_ended};

// MPI_SUCCESS, or the error, which has been reported.
int check(const Team& team, const Arguments& a, bool receives, TypeUse& use) {
    const auto wrong = [&](int error, const char* what) { return raise(a.comm, a.call, error, what); };
    if (a.count < 0) return wrong(MPI_ERR_COUNT, "the count is negative");
    if (a.type == MPI_DATATYPE_NULL) return wrong(MPI_ERR_TYPE, "the datatype is MPI_DATATYPE_NULL");
    use = use_type(a.type, a.buffer);
    if (!use.usable) return wrong(MPI_ERR_TYPE, "the datatype is not committed");
    if ((a.peer < 0 || a.peer >= team.kept_devices->size) && !(receives && a.peer == MPI_ANY_SOURCE))
        return wrong(MPI_ERR_RANK, "the rank of the device is not in the communicator");
    if (a.tag < 0 && !(receives && a.tag == MPI_ANY_TAG)) return wrong(MPI_ERR_TAG, "the tag is negative");
    return MPI_SUCCESS;
}

std::uint32_t dest_of(const Arguments& a) {
    return mixed_teams::member(static_cast<std::uint32_t>(a.peer), End::device);
}
struct Sources {
    std::uint32_t member, mask;
};
Sources sources_of(int source) {
    if (source == MPI_ANY_SOURCE) return {mixed_teams::member(0, End::device), mixed_teams::one_end};
    return {mixed_teams::member(static_cast<std::uint32_t>(source), End::device), mixed_teams::one_member};
}
std::uint32_t tag_of(int tag) {
    return tag == MPI_ANY_TAG ? OFFPATH_ANY_TAG : static_cast<std::uint32_t>(tag);
}

int refused(const Arguments& a, offpath_status_t status) {
    return raise(a.comm, a.call, MPI_ERR_OTHER, offpath_status_string(status));
}

int send_copy(Team& team, const Arguments& a, const TypeUse& use, std::size_t bytes) {
    auto copy = std::make_unique<std::byte[]>(std::max<std::size_t>(bytes, 1));
    if (bytes > 0 && !copy_packed(use, a.buffer, static_cast<std::size_t>(a.count), copy.get()))
        return raise(a.comm, a.call, MPI_ERR_TYPE, "the message cannot be packed");
    offpath_request_h device = nullptr;
    const offpath_status_t status =
        offpath_send_offload(team.kept_devices->team, copy.get(), bytes, dest_of(a), tag_of(a.tag), &device);
    if (status != OFFPATH_OK) return refused(a, status);
    keep_copied_send(device, std::move(copy));
    count_sent(bytes);
    return MPI_SUCCESS;
}

int wait(MPI_Request* request, MPI_Status* status) {
    wait_until_done(*request);
    return PMPI_Wait(request, status);
}

int publish_message(OffloadedRequest& operation, offpath_status_t status, MPI_Request* request) {
    if (status == OFFPATH_OK) pending.fetch_add(1, std::memory_order_relaxed);
    return publish(operation, status, request);
}

// Starts a send that is not copied first.
int send_in_place(Team& team, const Arguments& a, const TypeUse& use, MPI_Request* request) {
    OffloadedRequest& operation = acquire_request(message_request, team);
    operation.call = a.call;
    const auto count = static_cast<std::size_t>(a.count);
    const void* const from = bytes_to_send(operation, use, a.buffer, count);
    const offpath_status_t status =
        from == nullptr ? OFFPATH_ERR_MEMORY
                        : offpath_send_offload(team.kept_devices->team, from, count * use.bytes, dest_of(a),
                                               tag_of(a.tag), &operation.device);
    if (status == OFFPATH_OK) count_sent(count * use.bytes);
    return publish_message(operation, status, request);
}

// A request that is done.
int give_done(const Arguments& a, MPI_Request* request) {
    return PMPI_Isend(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, a.comm, request);
}

}  // namespace

int send(Team& team, const Arguments& a, bool copies) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = start_send(team, a, &request, copies);
    return error == MPI_SUCCESS ? wait(&request, MPI_STATUS_IGNORE) : error;
}

int start_send(Team& team, const Arguments& a, MPI_Request* request, bool copies) {
    if (a.peer == MPI_PROC_NULL) return give_done(a, request);
    TypeUse use;
    if (const int error = check(team, a, false, use); error != MPI_SUCCESS) return error;
    const std::size_t bytes = static_cast<std::size_t>(a.count) * use.bytes;
    if (bytes > copied_bytes && !copies) return send_in_place(team, a, use, request);
    const int error = send_copy(team, a, use, bytes);
    return error == MPI_SUCCESS ? give_done(a, request) : error;
}

int receive(Team& team, const Arguments& a, MPI_Status* status) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = start_receive(team, a, &request);
    return error == MPI_SUCCESS ? wait(&request, status) : error;
}

int start_receive(Team& team, const Arguments& a, MPI_Request* request) {
    if (a.peer == MPI_PROC_NULL) return PMPI_Irecv(a.buffer, a.count, a.type, a.peer, a.tag, a.comm, request);
    TypeUse use;
    if (const int error = check(team, a, true, use); error != MPI_SUCCESS) return error;
    OffloadedRequest& operation = acquire_request(message_request, team);
    operation.call = a.call;
    operation.receives = true;
    operation.message = {};
    const auto count = static_cast<std::size_t>(a.count);
    const std::size_t bytes = count * use.bytes;
    void* const into = bytes > 0 ? bytes_to_receive(operation, use, a.buffer, count) : a.buffer;
    const Sources from = sources_of(a.peer);
    const offpath_status_t status =
        into == nullptr && bytes > 0 ? OFFPATH_ERR_MEMORY
                                     : offpath_recv_masked(team.kept_devices->team, into, bytes, from.member,
                                                           from.mask, tag_of(a.tag), &operation.device);
    return publish_message(operation, status, request);
}

int send_and_receive(Team& team, const Arguments& out, const Arguments& in, MPI_Status* status) {
    // What is sent may be what is received into.
    MPI_Request sent = MPI_REQUEST_NULL;
    MPI_Request received = MPI_REQUEST_NULL;
    const bool replaces = out.buffer == in.buffer;
    int error = start_send(team, out, &sent, replaces);
    if (error != MPI_SUCCESS) return error;
    error = start_receive(team, in, &received);
    if (error == MPI_SUCCESS) error = wait(&received, status);
    const int end = wait(&sent, MPI_STATUS_IGNORE);
    return error != MPI_SUCCESS ? error : end;
}

int probe(Team& team, const char* call, int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
    if (source == MPI_PROC_NULL)
        return flag != nullptr ? PMPI_Iprobe(source, tag, comm, flag, status)
                               : PMPI_Probe(source, tag, comm, status);
    const Arguments a{call, nullptr, 0, MPI_BYTE, source, tag, comm};
    TypeUse use;
    if (const int error = check(team, a, true, use); error != MPI_SUCCESS) return error;
    const Sources from = sources_of(source);
    offpath_request_h request = nullptr;
    offpath_status_t result = offpath_probe(team.kept_devices->team, from.member, from.mask, tag_of(tag),
                                            flag == nullptr ? 1 : 0, &request);
    if (result != OFFPATH_OK) return refused(a, result);
    for (Backoff backoff; (result = offpath_request_test(request)) == OFFPATH_IN_PROGRESS;
         backoff.pause(request)) {
        poll();
        progress_parts();
    }
    offpath_message_t message{};
    if (result == OFFPATH_OK) offpath_request_message(request, &message);
    offpath_request_free(request);
    if (flag != nullptr) *flag = result == OFFPATH_OK ? 1 : 0;
    if (flag != nullptr && result == OFFPATH_ERR_CANCELED) return MPI_SUCCESS;
    if (result != OFFPATH_OK) return refused(a, result);
    if (status == MPI_STATUS_IGNORE) return MPI_SUCCESS;
    status->MPI_SOURCE = static_cast<int>(mixed_teams::rank_of(message.source));
    status->MPI_TAG = static_cast<int>(message.tag);
    PMPI_Status_set_cancelled(status, 0);
    return PMPI_Status_set_elements_x(status, MPI_BYTE, static_cast<MPI_Count>(message.bytes));
}

std::size_t left_messages() {
    poll();
    return pending.load(std::memory_order_relaxed) + left_copied_sends();
}

int unsupported(const char* call, MPI_Comm comm) {
    return raise(comm, call, MPI_ERR_UNSUPPORTED_OPERATION,
                 "not supported on a communicator with the key REMOTE_DEST_HETERO");
}

}  // namespace offpath::mpi::devices
