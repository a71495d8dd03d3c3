// Sends a large message: its payload waits at the device under a key, and its header uses the host's MPI.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <utility>
#include <vector>

#include "communicators/communicators.h"
#include "counts.h"
#include "datatypes/large_counts.h"
#include "lock.h"
#include "parcel_progress.h"
#include "requests/buffers.h"
#include "runtime/losses.h"
#include "runtime/staging.h"
#include "settings.h"
#include "shared_buffers.h"

namespace offpath::mpi::p2p {
namespace {

std::vector<Parcel*> device_sends;

offpath_message_key_t next_key(Parcel& parcel) {
    const auto number = parcel.pairs->sent.next(parcel.peer, parcel.tag);
    parcel.numbered = number.has_value();
    // Tags are not negative, so keys with and without a number differ in the highest bit.
    const std::uint64_t low = parcel.numbered
                                  ? std::uint64_t{static_cast<std::uint32_t>(parcel.tag)} << 32 | *number
                                  : std::uint64_t{1} << 63 | parcel.pairs->unnumbered++;
    return {parcel.pairs->id, low};
}

// Returns the address of the bytes to be sent. Null: there is no memory, or the host's MPI cannot pack them.
const void* bytes_of(Parcel& parcel, Mode mode) {
    if (parcel.use.contiguous() && mode != Mode::buffered) return parcel.buffer;
    parcel.staging = acquire_staging(parcel.capacity);
    void* packed = parcel.staging.address;
    return packed != nullptr && copy_packed(parcel.use, parcel.buffer, parcel.count, packed) ? packed
                                                                                             : nullptr;
}

int send_payload_by_host(Parcel& parcel, const void* bytes, Header& header) {
    header.kind = Header::by_host;
    header.payload_tag = next_payload_tag();
    return PMPI_Isend(bytes, static_cast<int>(parcel.capacity), MPI_PACKED, parcel.pairs->world(parcel.peer),
                      header.payload_tag, payload_comm(), &parcel.payload);
}

// Reports, once, that the device no longer accepts messages.
void say_refused(const Parcel& parcel, offpath_status_t status) {
    static bool said = false;
    if (std::exchange(said, true)) return;
    warn(Code::slower_way,
         fmt::format("rank {}: a message of {} bytes to rank {} cannot go by the device: {}; it goes by the "
                     "host's MPI, as later ones do",
                     runtime().rank, parcel.capacity, parcel.pairs->world(parcel.peer),
                     offpath_status_string(status)));
}

bool is_full() {
    return sends_in_flight.load(std::memory_order_relaxed) >= most_sends_in_flight;
}

// Checks whether some of the sends on the device are done.
void make_room() {
    constexpr std::size_t looks = 16;
    static std::size_t next = 0;
    for (std::size_t i = 0; i < looks && !device_sends.empty(); ++i)
        // A send that is done removes itself from the list.
        advance(*device_sends[next++ % device_sends.size()]);
}

// The send needs a request of its own: for short sends that complete at once, the host may return a shared
// one.
int start_on_host(const void* buffer, int count, MPI_Datatype type, Mode mode, const Arguments& arguments,
                  Parcel& parcel) {
    const auto make = mode == Mode::synchronous ? PMPI_Ssend_init
                      : mode == Mode::ready     ? PMPI_Rsend_init
                                                : PMPI_Send_init;
    int error = make(buffer, count, type, arguments.peer, arguments.tag, arguments.comm, &parcel.handle);
    if (error != MPI_SUCCESS) return error;
    error = PMPI_Start(&parcel.handle);
    if (error != MPI_SUCCESS) PMPI_Request_free(&parcel.handle);
    return error;
}

// Sends a message without a header. `packed` has its bytes if they could not stay in the user's buffer.
int start_without_header(const Arguments& arguments, Mode mode, Parcel& parcel) {
    const void* packed = parcel.staging.address;
    if (packed == nullptr)
        return start_on_host(arguments.buffer, arguments.count, arguments.type, mode, arguments, parcel);
    if (parcel.capacity <= INT_MAX)
        return start_on_host(packed, static_cast<int>(parcel.capacity), MPI_PACKED, mode, arguments, parcel);
    MPI_Datatype all = type_of_many(static_cast<MPI_Count>(parcel.capacity), MPI_BYTE);
    const int error = start_on_host(packed, 1, all, mode, arguments, parcel);
    PMPI_Type_free(&all);
    return error;
}

}  // namespace

bool goes_with_header(std::size_t bytes) {
    return bytes >= job_settings.min_bytes || bytes == header_bytes;
}

int next_payload_tag() {
    static std::uint32_t payloads = 0;
    return static_cast<int>(payloads++ % static_cast<std::uint32_t>(payload_tags()));
}

Parcel* find_device_send(int world_rank, const offpath_message_key_t& key) {
    const auto found = std::find_if(device_sends.begin(), device_sends.end(), [&](const Parcel* parcel) {
        return parcel->key.high == key.high && parcel->key.low == key.low &&
               parcel->pairs->world(parcel->peer) == world_rank;
    });
    return found != device_sends.end() ? *found : nullptr;
}

void left_device(Parcel& parcel) {
    std::erase(device_sends, &parcel);
    if (!parcel.forsaken) disregard(parcel);
    sends_in_flight.fetch_sub(1, std::memory_order_relaxed);
}

namespace {

int started(Parcel& parcel, bool by_host, Parcel** made) {
    parcel.by_host = by_host;
    register_parcel(parcel);
    if (parcel.capacity >= job_settings.min_bytes) posted(parcel);
    *made = &parcel;
    return MPI_SUCCESS;
}

}  // namespace

int start_send(const Arguments& arguments, const TypeUse& use, Mode mode, Team& team, Pairs& pairs,
               Parcel** made, bool* ours) {
    Parcel& parcel = acquire_parcel(team, pairs, false);
    parcel.buffer = arguments.buffer;
    parcel.count = static_cast<std::size_t>(arguments.count);
    parcel.use = use;
    if (use.layout != nullptr) retain(*use.layout);
    parcel.capacity = parcel.count * use.bytes;
    parcel.peer = arguments.peer;
    parcel.tag = arguments.tag;
    parcel.key = next_key(parcel);
    const auto give_up = [&](int error, bool is_ours) {
        if (parcel.numbered) pairs.sent.undo(parcel.peer, parcel.tag);
        release_parcel(parcel);
        *ours = is_ours;
        return error;
    };

    const void* bytes = bytes_of(parcel, mode);
    if (bytes == nullptr) return give_up(MPI_ERR_NO_MEM, true);
    const bool second_message = parcel.capacity < job_settings.min_bytes;
    if (!second_message) {
        if (is_full()) make_room();
        offpath_status_t status = OFFPATH_ERR_UNAVAILABLE;
        if (!is_full() && !is_lost(pairs.world(parcel.peer)) &&
            !has_promised_no_headers(pairs, parcel.peer, parcel.tag)) {
            status = offpath_message_send(world_team(), bytes, parcel.capacity,
                                          static_cast<std::uint32_t>(pairs.world(parcel.peer)), parcel.key,
                                          &parcel.keyed_message);
            if (status != OFFPATH_OK) say_refused(parcel, status);
            if (status == OFFPATH_ERR_PEER_LOST) lost_own_device();
        }
        if (status != OFFPATH_OK) {
            if (const int error = start_without_header(arguments, mode, parcel); error != MPI_SUCCESS)
                return give_up(error, false);
            return started(parcel, true, made);
        }
        device_sends.push_back(&parcel);
        attend(parcel);
        sends_in_flight.fetch_add(1, std::memory_order_relaxed);
    }
    Header header;
    header.bytes = parcel.capacity;
    header.key = parcel.key;
    header.source = static_cast<std::uint32_t>(runtime().rank);
    header.destination = static_cast<std::uint32_t>(pairs.world(parcel.peer));
    if (second_message) {
        if (const int error = send_payload_by_host(parcel, bytes, header); error != MPI_SUCCESS)
            return give_up(error, true);
    }
    const HeaderBytes encoded = encode(header);
    std::copy(encoded.begin(), encoded.end(), parcel.own.begin());
    const Mode header_mode = mode == Mode::synchronous ? mode : Mode::standard;
    if (const int error =
            start_on_host(parcel.own.data(), header_bytes, MPI_BYTE, header_mode, arguments, parcel);
        error != MPI_SUCCESS) {
        // The payload is no longer needed; it ends with the attachment.
        if (parcel.keyed_message != nullptr) {
            offpath_request_free(parcel.keyed_message);
            left_device(parcel);
        }
        return give_up(error, false);
    }
    if (!second_message) count_sent(parcel.capacity);
    return started(parcel, false, made);
}

int start_send_by_host(const Arguments& arguments, std::size_t bytes, Mode mode, Team& team, Pairs& pairs,
                       Parcel** made) {
    Parcel& parcel = acquire_parcel(team, pairs, false);
    parcel.capacity = bytes;
    parcel.peer = arguments.peer;
    parcel.tag = arguments.tag;
    parcel.numbered = pairs.sent.next(arguments.peer, arguments.tag).has_value();
    if (const int error = start_without_header(arguments, mode, parcel); error != MPI_SUCCESS) {
        if (parcel.numbered) pairs.sent.undo(arguments.peer, arguments.tag);
        release_parcel(parcel);
        return error;
    }
    count_kept_by_host(only_waits(pairs, parcel.peer, parcel.tag));
    return started(parcel, true, made);
}

}  // namespace offpath::mpi::p2p
