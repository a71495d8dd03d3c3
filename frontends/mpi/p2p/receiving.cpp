// Posts a receive with the host's MPI, and handles the message or header that it gets.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <optional>
#include <vector>

#include "communicators/communicators.h"
#include "counts.h"
#include "datatypes/large_counts.h"
#include "gpu/memory.h"
#include "header_watcher.h"
#include "lock.h"
#include "parcel_progress.h"
#include "requests/buffers.h"
#include "rescue.h"
#include "settings.h"
#include "shared_buffers.h"

namespace offpath::mpi::p2p {
namespace {

Parcel& make_receive(const Arguments& arguments, const TypeUse& use, Team& team, Pairs& pairs) {
    Parcel& parcel = acquire_parcel(team, pairs, true);
    parcel.buffer = arguments.buffer;
    parcel.count = static_cast<std::size_t>(arguments.count);
    parcel.use = use;
    if (use.layout != nullptr) retain(*use.layout);
    parcel.capacity = parcel.count * use.bytes;
    parcel.large = parcel.capacity >= job_settings.min_bytes;
    parcel.peer = arguments.peer;
    parcel.tag = arguments.tag;
    return parcel;
}

// Counts a receive with known source and tag. Its number is certain unless an older receive with a wildcard
// may still take one of these messages. This is checked first, because the older one would be counted too.
void take_number(Parcel& parcel) {
    const bool certain = !wildcard_in_the_way(*parcel.pairs, parcel.peer, parcel.tag);
    const auto number = parcel.pairs->received.next(parcel.peer, parcel.tag);
    parcel.counted = number.has_value();
    parcel.numbered = certain && number.has_value();
    parcel.number = number.value_or(0);
}

void give_number_back(Parcel& parcel) {
    if (parcel.counted) parcel.pairs->received.undo(parcel.peer, parcel.tag);
    parcel.counted = parcel.numbered = false;
}

void land_short(Parcel& parcel) {
    parcel.landing = parcel.own.data();
    parcel.landing_bytes = parcel.own.size();
}

int post_landing(const Parcel& parcel, const Arguments& arguments, MPI_Request* request) {
    const auto receive = [&](int count, MPI_Datatype type) {
        return PMPI_Irecv(parcel.landing, count, type, arguments.peer, arguments.tag, arguments.comm,
                          request);
    };
    if (parcel.landing_bytes <= INT_MAX) return receive(static_cast<int>(parcel.landing_bytes), MPI_PACKED);
    MPI_Datatype all = type_of_many(static_cast<MPI_Count>(parcel.landing_bytes), MPI_BYTE);
    const int error = receive(1, all);
    PMPI_Type_free(&all);
    return error;
}

// `awaited`: the call returns only after the receive is complete, and checks it all the time until then.
int post(Parcel& parcel, const Arguments& arguments, bool awaited) {
    if (parcel.capacity <= header_bytes) {
        land_short(parcel);
        return PMPI_Irecv(parcel.landing, short_landing_bytes, MPI_PACKED, arguments.peer, arguments.tag,
                          arguments.comm, &parcel.handle);
    }
    parcel.direct = !parcel.large || (parcel.use.contiguous() && !parcel.early && !parcel.beneath);
    if (!parcel.direct) {
        // Takes the whole size, because an announced message may still arrive through the host's MPI. If none
        // arrives here, the pages are never touched.
        parcel.landing_bytes = parcel.capacity;
        parcel.landing = acquire_landing(parcel.landing_bytes);
        if (parcel.landing == nullptr) {
            if (parcel.early) drop_early(parcel);
            parcel.direct = true;
        }
    }
    // Starts the watch before the header can arrive. A message that must be unpacked is contiguous only in
    // `landing`.
    if (parcel.large && !parcel.early && !parcel.agreed && !awaited &&
        (!parcel.direct || parcel.use.contiguous()))
        watch(parcel, parcel.direct ? static_cast<char*>(parcel.buffer) : parcel.landing, parcel.capacity);
    if (!parcel.direct) return post_landing(parcel, arguments, &parcel.handle);
    return PMPI_Irecv(arguments.buffer, arguments.count, arguments.type, arguments.peer, arguments.tag,
                      arguments.comm, &parcel.handle);
}

bool take_extracted(Pairs& pairs, int source, int tag, Extracted& taken) {
    const auto found =
        std::find_if(pairs.extracted.begin(), pairs.extracted.end(),
                     [&](const Extracted& one) { return matches(source, tag, one.source, one.tag); });
    if (found == pairs.extracted.end()) return false;
    taken = *found;
    pairs.extracted.erase(found);
    return true;
}

std::optional<Header> header_of(const Parcel& parcel) {
    if (!parcel.direct) return decode_if_whole(parcel.landing);
    if (parcel.use.contiguous()) return decode_if_whole(parcel.buffer);
    const std::size_t part = part_bytes(*parcel.use.layout);
    const std::size_t parts = (header_bytes + part - 1) / part;
    std::vector<char> packed(parts * part);
    pack_parts(*parcel.use.layout, parcel.buffer, parts, packed.data());
    return decode_if_whole(packed.data());
}

void unpack_to_user(const Parcel& parcel, const char* packed, std::size_t bytes) {
    if (bytes == 0) return;
    if (parcel.use.contiguous()) {
        std::memcpy(parcel.buffer, packed, bytes);
        return;
    }
    const Layout& layout = *parcel.use.layout;
    const std::size_t size = part_bytes(layout);
    const std::size_t whole = bytes / size;
    const std::size_t rest = bytes - whole * size;
    unpack_parts(layout, packed, parcel.buffer, whole);
    if (rest == 0) return;
    // The host's MPI can unpack a part of an element only by receiving a message.
    if (layout.in_gpu) {
        gpu::copy(at(parcel.buffer, static_cast<MPI_Aint>(whole * size)), packed + whole * size, rest);
    } else {
        const int self = runtime().rank, tag = static_cast<int>(StandIn::unpacked);
        PMPI_Sendrecv(packed + whole * size, static_cast<int>(rest), MPI_PACKED, self, tag,
                      at(parcel.buffer, static_cast<MPI_Aint>(whole) * part_extent(layout)), 1, layout.held,
                      self, tag, payload_comm(), MPI_STATUS_IGNORE);
    }
}

void receive_payload(Parcel& parcel, const Header& header) {
    void* place = parcel.buffer;
    if (!parcel.use.contiguous() || parcel.announced > parcel.capacity) {
        parcel.staging = acquire_staging(std::max<std::size_t>(1, parcel.announced));
        place = parcel.staging.address;
    }
    if (parcel.announced > parcel.capacity) {
        parcel.error = MPI_ERR_TRUNCATE;
        parcel.error_is_ours = true;
    }
    PMPI_Irecv(place, static_cast<int>(parcel.announced), MPI_PACKED, parcel.pairs->world(parcel.peer),
               header.payload_tag, payload_comm(), &parcel.payload);
}

// Call it if the watcher asked the device for something that has turned out to be no header.
void take_back_asked(Parcel& parcel, const Asked& asked) {
    if (withdraw(asked.header.source, asked.header.key, asked.keyed_message)) return;
    parcel.error = MPI_ERR_INTERN;
    parcel.error_is_ours = true;
}

// `keyed_message`: the receive that the watcher has started at the device.
void receive_announced(Parcel& parcel, const Header& header, offpath_request_h keyed_message = nullptr) {
    parcel.by_header = true;
    parcel.announced = static_cast<std::size_t>(header.bytes);
    if (parcel.announced > parcel.capacity) cut_off(parcel);
    if (header.kind == Header::by_host) {
        if (parcel.early) drop_early(parcel);
        return receive_payload(parcel, header);
    }
    if (parcel.early) {
        if (parcel.key.high == header.key.high && parcel.key.low == header.key.low) return count_early();
        if (!take_back(parcel)) {
            warn(Code::receives,
                 fmt::format(
                     "rank {}: a message from rank {} was counted differently there and here; a receive "
                     "that did not pass through this library?",
                     runtime().rank, parcel.pairs->world(parcel.peer)));
            parcel.error = MPI_ERR_INTERN;
            parcel.error_is_ours = true;
            return;
        }
    }
    parcel.key = header.key;
    if (keyed_message != nullptr) {
        parcel.keyed_message = keyed_message;
        parcel.landed = !parcel.direct;
        return;
    }
    // The sender is done once its message has met a receive, even one without room for it.
    const offpath_status_t status =
        ask_device(parcel, parcel.announced <= parcel.capacity ? parcel.announced : 0);
    if (status == OFFPATH_OK || (status == OFFPATH_ERR_PEER_LOST && begin_rescue(parcel))) return;
    fail(parcel, MPI_ERR_OTHER, "receive", status);
}

void lost_header(Parcel& parcel) {
    warn(Code::receives,
         fmt::format(
             "rank {}: a receive of {} bytes from rank {}, tag {}, was overwritten before it was read; "
             "do several receives share one buffer?",
             runtime().rank, parcel.capacity, parcel.pairs->world(parcel.peer), parcel.tag));
    parcel.error = MPI_ERR_OTHER;
    parcel.error_is_ours = true;
}

}  // namespace

offpath_status_t ask_device(Parcel& parcel, std::size_t room) {
    void* place = parcel.buffer;
    if (room > 0 && !parcel.use.contiguous()) {
        parcel.staging = acquire_staging(room);
        place = parcel.staging.address;
    }
    const offpath_status_t status = offpath_message_recv(
        world_team(), room > 0 ? place : nullptr, room,
        static_cast<std::uint32_t>(parcel.pairs->world(parcel.peer)), parcel.key, &parcel.keyed_message);
    if (status != OFFPATH_OK) parcel.keyed_message = nullptr;
    return status;
}

void host_is_done(Parcel& parcel, const MPI_Status& status) {
    if (parcel.watched && parcel.receives) {
        for (Parcel* before : expected_beneath(parcel))
            advance(*before);
    }
    parcel.host_done = true;
    is_moved_no_longer(parcel);
    parcel.status = status;
    if (!parcel.receives) {
        if (parcel.error_is_told) parcel.error = status.MPI_ERROR;
        return;
    }
    Asked asked;
    const bool was_asked = unwatch(parcel, &asked);
    int cancelled = 0;
    PMPI_Test_cancelled(&status, &cancelled);
    if (parcel.wild) {
        parcel.wild = false;
        std::erase(parcel.pairs->wild, &parcel);
    } else if (cancelled != 0) {
        give_number_back(parcel);
    }
    if (cancelled != 0) {
        parcel.error = MPI_SUCCESS;
        parcel.capacity = 0;
        if (was_asked) take_back_asked(parcel, asked);
        return;
    }
    const bool was_wild = !is_exact(parcel.peer, parcel.tag);
    parcel.peer = status.MPI_SOURCE;
    parcel.tag = status.MPI_TAG;
    if (was_wild && parcel.pairs->takes_part(parcel.peer))
        parcel.pairs->received.next(parcel.peer, parcel.tag);  // its number is not known
    const std::size_t bytes = received_bytes(status);
    if (status.MPI_ERROR != MPI_SUCCESS) {
        parcel.error = status.MPI_ERROR;
        cut_off(parcel);
        if (parcel.early) drop_early(parcel);
        if (was_asked) take_back_asked(parcel, asked);
        return;
    }
    if (bytes == header_bytes && parcel.pairs->takes_part(parcel.peer)) {
        if (was_asked) return receive_announced(parcel, asked.header, asked.keyed_message);
        const std::optional<Header> header = header_of(parcel);
        return header.has_value() ? receive_announced(parcel, *header) : lost_header(parcel);
    }
    if (parcel.early) drop_early(parcel);
    if (was_asked) take_back_asked(parcel, asked);
    parcel.announced = bytes;
    // The front end's memory had room for more. Also, MPICH 5.0 does not report every message that it
    // truncates.
    if (bytes > parcel.capacity) {
        parcel.error = MPI_ERR_TRUNCATE;
        parcel.error_is_ours = true;
    }
}

void deliver(Parcel& parcel) {
    if (parcel.by_header) {
        if (parcel.landed) return unpack_to_user(parcel, parcel.landing, parcel.announced);
        if (parcel.staging.address != nullptr)
            unpack_to_user(parcel, static_cast<const char*>(parcel.staging.address), parcel.announced);
        return;
    }
    if (parcel.landing == nullptr) return;
    unpack_to_user(parcel, parcel.landing, parcel.announced);
}

int start_receive(const Arguments& arguments, const TypeUse& use, Team& team, Pairs& pairs, bool awaited,
                  Parcel** made, MPI_Request* request) {
    Extracted extracted;
    if (!pairs.extracted.empty() && take_extracted(pairs, arguments.peer, arguments.tag, extracted)) {
        pairs.received.next(extracted.source, extracted.tag);
        if (extracted.message == MPI_MESSAGE_NULL) {
            *made = &receive_extracted(arguments, use, team, pairs, extracted, true);
            return MPI_SUCCESS;
        }
        return PMPI_Imrecv(arguments.buffer, arguments.count, arguments.type, &extracted.message, request);
    }
    Parcel& parcel = make_receive(arguments, use, team, pairs);
    if (is_exact(arguments.peer, arguments.tag)) {
        take_number(parcel);
        expect(parcel);
        if (parcel.large && !parcel.by_host && !parcel.beneath) try_early(parcel);
    }
    if (const int error = post(parcel, arguments, awaited); error != MPI_SUCCESS) {
        if (parcel.early) drop_early(parcel);
        give_number_back(parcel);
        release_parcel(parcel);
        return error;
    }
    if (!is_exact(arguments.peer, arguments.tag)) {
        parcel.wild = true;
        parcel.any_source_or_tag = true;
        pairs.wild.push_back(&parcel);
    }
    if (parcel.large) {
        attend(parcel);
        posted(parcel);
    }
    register_parcel(parcel);
    *made = &parcel;
    return MPI_SUCCESS;
}

Parcel& received_by_host(const Arguments& arguments, const TypeUse& use, Team& team, Pairs& pairs,
                         const MPI_Status& status, const char* landed, int error) {
    Parcel& parcel = make_receive(arguments, use, team, pairs);
    parcel.direct = landed == nullptr;
    if (!parcel.direct) {
        land_short(parcel);
        std::copy_n(landed, short_landing_bytes, parcel.landing);
    }
    if (is_exact(arguments.peer, arguments.tag)) take_number(parcel);
    MPI_Status told = status;
    told.MPI_ERROR = error;
    host_is_done(parcel, told);
    return parcel;
}

Parcel& receive_extracted(const Arguments& arguments, const TypeUse& use, Team& team, Pairs& pairs,
                          const Extracted& message, bool with_handle) {
    Parcel& parcel = make_receive(arguments, use, team, pairs);
    parcel.peer = message.source;
    parcel.tag = message.tag;
    parcel.status = message.status;
    parcel.host_done = true;
    if (with_handle) {
        const int self = runtime().rank, tag = static_cast<int>(StandIn::completed);
        PMPI_Irecv(nullptr, 0, MPI_BYTE, self, tag, payload_comm(), &parcel.handle);
        PMPI_Send(nullptr, 0, MPI_BYTE, self, tag, payload_comm());
        register_parcel(parcel);
        attend(parcel);
    }
    receive_announced(parcel, message.header);
    return parcel;
}

}  // namespace offpath::mpi::p2p
