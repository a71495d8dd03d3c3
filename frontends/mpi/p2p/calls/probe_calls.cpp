// Probes, and receives of the messages that they matched. The size of a header's message is known only after
// the header was received. A probe that meets a header therefore takes it from the host's MPI, with all older
// messages of its source, and keeps them in order for later receives and probes.
#include <mpi.h>
#include <offpath/types.h>

#include <cstring>
#include <unordered_map>

#include "communicators/communicators.h"
#include "devices/devices.h"
#include "p2p/lock.h"
#include "p2p/parcel_progress.h"
#include "requests/offloaded_requests.h"
#include "runtime/backoff.h"
#include "runtime/departure.h"

namespace offpath::mpi::p2p {
namespace {

// Headers that MPI_Mprobe and MPI_Improbe gave to the user. For each, a message that this rank sends to
// itself stands in.
struct Matched {
    Team* team;
    Pairs* pairs;
    Extracted message;
};
std::unordered_map<std::uint64_t, Matched> matched_headers;
std::atomic<std::uint32_t> matched_count{0};

std::uint64_t bits_of(MPI_Message message) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &message, sizeof(MPI_Message));  // NOLINT(bugprone-sizeof-expression)
    return bits;
}

bool may_be_header(const Pairs& pairs, const MPI_Status& status) {
    return pairs.takes_part(status.MPI_SOURCE) && received_bytes(status) == header_bytes;
}

// Reads the header behind `message`.
void read_header(MPI_Message message, Extracted& into) {
    HeaderBytes bytes{};
    PMPI_Mrecv(bytes.data(), header_bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    into.message = MPI_MESSAGE_NULL;
    into.header = decode(bytes.data());
    PMPI_Status_set_elements_x(&into.status, MPI_BYTE, static_cast<MPI_Count>(into.header.bytes));
}

// Takes messages of `source` from the host's MPI up to the one with `tag`, which has arrived.
void extract(Pairs& pairs, int source, int tag, MPI_Comm comm) {
    for (int latest = MPI_ANY_TAG; latest != tag;) {
        int flag = 0;
        Extracted one;
        PMPI_Improbe(source, MPI_ANY_TAG, comm, &flag, &one.message, &one.status);
        if (flag == 0) continue;
        one.source = source;
        one.tag = latest = one.status.MPI_TAG;
        if (may_be_header(pairs, one.status)) read_header(one.message, one);
        pairs.extracted.push_back(one);
    }
}

const Extracted* find_extracted(const Pairs& pairs, int source, int tag) {
    for (const Extracted& one : pairs.extracted) {
        if (matches(source, tag, one.source, one.tag)) return &one;
    }
    return nullptr;
}

// Needs the lock.
int probe_once(Pairs& pairs, int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
    const Extracted* found = find_extracted(pairs, source, tag);
    if (found == nullptr) {
        MPI_Status own;
        const int error = PMPI_Iprobe(source, tag, comm, flag, &own);
        if (error != MPI_SUCCESS || *flag == 0) return error;
        if (!may_be_header(pairs, own)) {
            copy_status(own, status);
            return MPI_SUCCESS;
        }
        extract(pairs, own.MPI_SOURCE, own.MPI_TAG, comm);
        found = find_extracted(pairs, own.MPI_SOURCE, own.MPI_TAG);
    }
    *flag = 1;
    copy_status(found->status, status);
    return MPI_SUCCESS;
}

// Returns a matched message from this rank to itself.
MPI_Message stand_in() {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Message message = MPI_MESSAGE_NULL;
    const int self = runtime().rank, tag = static_cast<int>(StandIn::matched);
    PMPI_Isend(nullptr, 0, MPI_BYTE, self, tag, payload_comm(), &request);
    for (int flag = 0; flag == 0;)
        PMPI_Improbe(self, tag, payload_comm(), &flag, &message, MPI_STATUS_IGNORE);
    PMPI_Request_free(&request);  // MPICH completes it when it is received
    return message;
}

// Needs the lock.
int match_once(Team& team, Pairs& pairs, int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
               MPI_Status* status) {
    Extracted one;
    if (const Extracted* found = find_extracted(pairs, source, tag)) {
        one = *found;
        pairs.extracted.erase(pairs.extracted.begin() + (found - &pairs.extracted.front()));
    } else {
        const int error = PMPI_Improbe(source, tag, comm, flag, &one.message, &one.status);
        if (error != MPI_SUCCESS || *flag == 0) return error;
        one.source = one.status.MPI_SOURCE;
        one.tag = one.status.MPI_TAG;
        if (one.message != MPI_MESSAGE_NO_PROC && may_be_header(pairs, one.status))
            read_header(one.message, one);
    }
    *flag = 1;
    copy_status(one.status, status);
    if (pairs.takes_part(one.source)) pairs.received.next(one.source, one.tag);
    if (one.message != MPI_MESSAGE_NULL) {
        *message = one.message;
        return MPI_SUCCESS;
    }
    *message = stand_in();
    retain(team);
    matched_headers[bits_of(*message)] = {&team, &pairs, one};
    matched_count.fetch_add(1, std::memory_order_relaxed);
    return MPI_SUCCESS;
}

// MPICH's probes progress neither its collectives nor the receive of a letter.
void progress_all() {
    if (any_outstanding()) {
        mpi::poll();
        answer_letters();
    }
    poll();
}

bool plausible(const void* flag, int tag) {
    return flag != nullptr && (tag == MPI_ANY_TAG || (tag >= 0 && tag <= largest_tag()));
}

template <typename Once>
int repeat(Once once) {
    for (Backoff backoff;; backoff.pause()) {
        int flag = 0;
        {
            const auto guard = lock();
            if (const int error = once(&flag); error != MPI_SUCCESS || flag != 0) return error;
        }
        mpi::poll();
        poll();
    }
}

// Takes the header behind the user's message, if there is one.
bool take_matched(MPI_Message* message, Matched& taken) {
    if (matched_count.load(std::memory_order_relaxed) == 0 || message == nullptr) return false;
    const auto guard = lock();
    const auto found = matched_headers.find(bits_of(*message));
    if (found == matched_headers.end()) return false;
    taken = found->second;
    matched_headers.erase(found);
    matched_count.fetch_sub(1, std::memory_order_relaxed);
    return true;
}

Parcel& receive_matched(const Arguments& a, const Matched& matched, bool with_handle) {
    const auto guard = lock();
    Parcel& parcel = receive_extracted(a, use_type(a.type, a.buffer), *matched.team, *matched.pairs,
                                       matched.message, with_handle);
    release(*matched.team);
    return parcel;
}

}  // namespace

extern "C" {

OFFPATH_API int MPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
    if (messages_are_the_hosts()) return PMPI_Iprobe(source, tag, comm, flag, status);
    if (Team* const to = devices::team_of(comm); to != nullptr && flag != nullptr)
        return devices::probe(*to, "MPI_Iprobe", source, tag, comm, flag, status);
    Team* team = nullptr;
    Pairs* pairs = find_pairs(comm, &team);
    progress_all();
    if (pairs == nullptr || !pairs->may_get_header(source) || !plausible(flag, tag))
        return PMPI_Iprobe(source, tag, comm, flag, status);
    const auto guard = lock();
    return probe_once(*pairs, source, tag, comm, flag, status);
}

OFFPATH_API int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
    if (waited_messages_are_the_hosts()) return PMPI_Probe(source, tag, comm, status);
    const presence::Inside inside;
    if (Team* const to = devices::team_of(comm))
        return devices::probe(*to, "MPI_Probe", source, tag, comm, nullptr, status);
    Team* team = nullptr;
    Pairs* pairs = find_pairs(comm, &team);
    const bool ours = pairs != nullptr && pairs->may_get_header(source) && plausible(&team, tag);
    if (!ours && !must_poll()) return PMPI_Probe(source, tag, comm, status);
    return repeat([&](int* flag) {
        return ours ? probe_once(*pairs, source, tag, comm, flag, status)
                    : PMPI_Iprobe(source, tag, comm, flag, status);
    });
}

OFFPATH_API int MPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                            MPI_Status* status) {
    if (messages_are_the_hosts()) return PMPI_Improbe(source, tag, comm, flag, message, status);
    if (devices::team_of(comm) != nullptr) return devices::unsupported("MPI_Improbe", comm);
    Team* team = nullptr;
    Pairs* pairs = find_pairs(comm, &team);
    progress_all();
    if (pairs == nullptr || !pairs->may_get_header(source) || !plausible(flag, tag) || message == nullptr)
        return PMPI_Improbe(source, tag, comm, flag, message, status);
    const auto guard = lock();
    return match_once(*team, *pairs, source, tag, comm, flag, message, status);
}

OFFPATH_API int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
    if (waited_messages_are_the_hosts()) return PMPI_Mprobe(source, tag, comm, message, status);
    if (devices::team_of(comm) != nullptr) return devices::unsupported("MPI_Mprobe", comm);
    const presence::Inside inside;
    Team* team = nullptr;
    Pairs* pairs = find_pairs(comm, &team);
    const bool ours = pairs != nullptr && pairs->may_get_header(source) && plausible(message, tag);
    if (!ours && !must_poll()) return PMPI_Mprobe(source, tag, comm, message, status);
    return repeat([&](int* flag) {
        return ours ? match_once(*team, *pairs, source, tag, comm, flag, message, status)
                    : PMPI_Improbe(source, tag, comm, flag, message, status);
    });
}

OFFPATH_API int MPI_Mrecv(void* buffer, int count, MPI_Datatype type, MPI_Message* message,
                          MPI_Status* status) {
    const presence::Inside inside;
    Matched matched;
    if (!take_matched(message, matched)) return PMPI_Mrecv(buffer, count, type, message, status);
    PMPI_Mrecv(nullptr, 0, MPI_BYTE, message, MPI_STATUS_IGNORE);
    const Arguments a{buffer, count, type, matched.message.source, matched.message.tag, MPI_COMM_NULL};
    return wait_for(receive_matched(a, matched, false), status);
}

OFFPATH_API int MPI_Imrecv(void* buffer, int count, MPI_Datatype type, MPI_Message* message,
                           MPI_Request* request) {
    Matched matched;
    if (!take_matched(message, matched)) return PMPI_Imrecv(buffer, count, type, message, request);
    PMPI_Mrecv(nullptr, 0, MPI_BYTE, message, MPI_STATUS_IGNORE);
    const Arguments a{buffer, count, type, matched.message.source, matched.message.tag, MPI_COMM_NULL};
    *request = receive_matched(a, matched, true).handle;
    return MPI_SUCCESS;
}

}  // extern "C"

}  // namespace offpath::mpi::p2p
