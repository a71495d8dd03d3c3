// How a large message is sent: its payload waits at the device under a key, its header goes by the host's
// MPI.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <vector>

#include "backoff.h"
#include "buffers.h"
#include "communicators.h"
#include "counts.h"
#include "lock.h"
#include "moving.h"
#include "operations.h"
#include "staging.h"

namespace offpath::mpi::p2p {
namespace {

constexpr std::uint64_t longest_wait_for_room_ns = 1'000'000'000;

std::vector<Parcel*> device_sends;
bool gave_up = false;  // there was no room for long, and no send has left since

offpath_message_key_t next_key(Parcel& parcel) {
    const auto number = parcel.pairs->sent.next(parcel.peer, parcel.tag);
    parcel.numbered = number.has_value();
    // Tags are not negative, so that keys with and without a number differ in the highest bit.
    const std::uint64_t low = parcel.numbered
                                  ? std::uint64_t{static_cast<std::uint32_t>(parcel.tag)} << 32 | *number
                                  : std::uint64_t{1} << 63 | parcel.pairs->unnumbered++;
    return {parcel.pairs->id, low};
}

// Where the bytes to be sent lie. Null: no memory, or the host's MPI does not pack them.
const void* bytes_of(Parcel& parcel, Mode mode) {
    if (parcel.use.contiguous() && mode != Mode::buffered) return parcel.buffer;
    parcel.staging = acquire_staging(parcel.capacity);
    void* packed = parcel.staging.address;
    return packed != nullptr && copy_packed(parcel.use, parcel.buffer, parcel.count, packed) ? packed
                                                                                             : nullptr;
}

int send_payload_by_host(Parcel& parcel, const void* bytes, Header& header) {
    static std::uint32_t serial = 0;
    header.kind = Header::by_host;
    header.payload_tag = static_cast<int>(serial++ % static_cast<std::uint32_t>(payload_tags()));
    return PMPI_Isend(bytes, static_cast<int>(parcel.capacity), MPI_PACKED, parcel.pairs->world(parcel.peer),
                      header.payload_tag, payload_comm(), &parcel.payload);
}

// The device takes no message any more. Those that the host's MPI can carry instead are said of once.
void say_refused(const Parcel& parcel, offpath_status_t status, bool by_host) {
    static bool said = false;
    if (said && by_host) return;
    said = true;
    say(fmt::format("rank {}: a message of {} bytes to rank {} cannot go by the device: {}{}", runtime().rank,
                    parcel.capacity, parcel.pairs->world(parcel.peer), offpath_status_string(status),
                    by_host ? "; it goes by the host's MPI, as later ones do" : ""));
}

}  // namespace

bool goes_with_header(std::size_t bytes) {
    return bytes >= runtime().settings.p2p.min_bytes || bytes == header_bytes;
}

void left_device(Parcel& parcel) {
    std::erase(device_sends, &parcel);
    gave_up = false;
    sends_in_flight.fetch_sub(1, std::memory_order_relaxed);
}

void make_room() {
    const auto is_full = [] {
        return sends_in_flight.load(std::memory_order_relaxed) >= most_sends_in_flight;
    };
    for (Backoff backoff; is_full(); backoff.pause()) {
        {
            const auto guard = lock();
            if (gave_up) return;
            for (std::size_t i = device_sends.size(); i-- > 0;)  // one that is done takes itself off the list
                advance(*device_sends[i]);
            gave_up = is_full() && backoff.waited_ns() > longest_wait_for_room_ns;
        }
        mpi::poll();
        poll();
    }
}

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
    Header header;
    header.bytes = parcel.capacity;
    header.key = parcel.key;
    bool by_host = parcel.capacity < runtime().settings.p2p.min_bytes ||
                   (sends_in_flight.load(std::memory_order_relaxed) >= most_sends_in_flight &&
                    parcel.capacity <= INT_MAX);
    if (!by_host) {
        const offpath_status_t status = offpath_message_send(
            world_team(), bytes, parcel.capacity, static_cast<std::uint32_t>(pairs.world(parcel.peer)),
            parcel.key, &parcel.mail);
        if (status == OFFPATH_OK) {
            device_sends.push_back(&parcel);
            sends_in_flight.fetch_add(1, std::memory_order_relaxed);
        } else {
            by_host = parcel.capacity <= INT_MAX;
            say_refused(parcel, status, by_host);
            if (!by_host) return give_up(MPI_ERR_OTHER, true);
        }
    }
    if (by_host) {
        if (const int error = send_payload_by_host(parcel, bytes, header); error != MPI_SUCCESS)
            return give_up(error, true);
    }
    const HeaderBytes encoded = encode(header);
    std::copy(encoded.begin(), encoded.end(), parcel.own.begin());
    // A request of its own: those of short sends that are done at once may be one and the same.
    const auto make = mode == Mode::synchronous ? PMPI_Ssend_init : PMPI_Send_init;
    int error = make(parcel.own.data(), header_bytes, MPI_BYTE, arguments.peer, arguments.tag, arguments.comm,
                     &parcel.handle);
    if (error == MPI_SUCCESS) error = PMPI_Start(&parcel.handle);
    if (error != MPI_SUCCESS) {
        // The payload has no use any more; it ends with the attachment.
        if (parcel.mail != nullptr) {
            offpath_request_free(parcel.mail);
            left_device(parcel);
        }
        return give_up(error, false);
    }
    if (!by_host) count_sent(parcel.capacity);
    register_parcel(parcel);
    if (parcel.capacity >= runtime().settings.p2p.min_bytes) posted(parcel);
    *made = &parcel;
    return MPI_SUCCESS;
}

int start_send_by_host(const Arguments& a, std::size_t bytes, Mode mode, Team& team, Pairs& pairs,
                       Parcel** made) {
    Parcel& parcel = acquire_parcel(team, pairs, false);
    parcel.by_host = true;
    parcel.capacity = bytes;
    parcel.peer = a.peer;
    parcel.tag = a.tag;
    parcel.numbered = pairs.sent.next(a.peer, a.tag).has_value();
    const auto make = mode == Mode::synchronous ? PMPI_Ssend_init
                      : mode == Mode::ready     ? PMPI_Rsend_init
                                                : PMPI_Send_init;
    int error = make(a.buffer, a.count, a.type, a.peer, a.tag, a.comm, &parcel.handle);
    if (error == MPI_SUCCESS) {
        error = PMPI_Start(&parcel.handle);
        if (error != MPI_SUCCESS) PMPI_Request_free(&parcel.handle);
    }
    if (error != MPI_SUCCESS) {
        if (parcel.numbered) pairs.sent.undo(a.peer, a.tag);
        release_parcel(parcel);
        return error;
    }
    register_parcel(parcel);
    posted(parcel);
    count_only_waited_for();
    *made = &parcel;
    return MPI_SUCCESS;
}

}  // namespace offpath::mpi::p2p
