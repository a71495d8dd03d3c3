#include "pairs.h"

#include <algorithm>
#include <climits>

namespace offpath::mpi {
namespace {

bool same_data(const Block& a, const Block& b) {
    return a.elements == b.elements && a.count == b.count && a.type == b.type;
}

// The places of large blocks. If all are plain bytes and none must be copied, they are in the user's buffers,
// counted from the lowest block. Otherwise they are contiguous in staging memory. Blocks with the same
// description share a place.
struct Places {
    char* base = nullptr;
    bool staged = false;
    std::size_t staged_bytes = 0;
};

Places place(const std::vector<Block>& blocks, bool staged, std::uint64_t threshold,
             std::vector<std::size_t>& bytes, std::vector<std::size_t>& offsets) {
    Places places;
    places.staged = staged;
    bytes.assign(blocks.size(), 0);
    offsets.assign(blocks.size(), 0);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const Block& block = blocks[i];
        if (block.bytes() < threshold) continue;
        bytes[i] = block.bytes();
        places.staged = places.staged || !block.use.contiguous();
        if (places.base == nullptr || block.elements < places.base) places.base = block.elements;
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (bytes[i] == 0) continue;
        if (!places.staged) {
            offsets[i] = static_cast<std::size_t>(blocks[i].elements - places.base);
            continue;
        }
        offsets[i] = places.staged_bytes;
        places.staged_bytes += bytes[i];
    }
    return places;
}

// Neighbours that all get the same data are served from one place in the staging memory.
void share_places(const std::vector<Block>& sends, Places& places, OffloadedRequest& operation) {
    if (!places.staged) return;
    places.staged_bytes = 0;
    for (std::size_t i = 0; i < sends.size(); ++i) {
        if (operation.send_bytes[i] == 0) continue;
        if (i > 0 && operation.send_bytes[i - 1] != 0 && same_data(sends[i], sends[i - 1])) {
            operation.send_offsets[i] = operation.send_offsets[i - 1];
            continue;
        }
        operation.send_offsets[i] = places.staged_bytes;
        places.staged_bytes += operation.send_bytes[i];
    }
}

// Packs the large blocks. In place, the small ones follow them, because they too would be overwritten before
// they are sent.
bool stage_sends(const Exchange& exchange, const Places& places, OffloadedRequest& operation) {
    const std::vector<Block>& sends = exchange.sends;
    std::size_t bytes = places.staged_bytes;
    for (std::size_t i = 0; exchange.send_copies && i < sends.size(); ++i) {
        if (operation.send_bytes[i] != 0) continue;
        operation.send_offsets[i] = bytes;
        bytes += sends[i].bytes();
    }
    if (bytes == 0) return true;
    operation.send_staging = acquire_staging(bytes);
    char* staging = static_cast<char*>(operation.send_staging.address);
    if (staging == nullptr) return false;
    for (std::size_t i = 0; i < sends.size(); ++i) {
        const bool large = operation.send_bytes[i] != 0;
        if (!large && !exchange.send_copies) continue;
        if (large && i > 0 && operation.send_bytes[i - 1] != 0 &&
            operation.send_offsets[i] == operation.send_offsets[i - 1])
            continue;
        if (!copy_packed(sends[i].use, sends[i].elements, static_cast<std::size_t>(sends[i].count),
                         staging + operation.send_offsets[i])) {
            return false;
        }
    }
    return true;
}

bool stage_receives(const std::vector<Block>& recvs, const Places& places, OffloadedRequest& operation) {
    if (places.staged_bytes == 0) return true;
    operation.recv_staging = acquire_staging(places.staged_bytes);
    char* staging = static_cast<char*>(operation.recv_staging.address);
    if (staging == nullptr) return false;
    for (std::size_t i = 0; i < recvs.size(); ++i) {
        if (operation.recv_bytes[i] == 0) continue;
        unpack_later(operation, recvs[i].use, recvs[i].elements, static_cast<std::size_t>(recvs[i].count),
                     operation.recv_offsets[i]);
    }
    return true;
}

// Sizes from this rank's view. The call counts as offloaded if one of its pairs is.
void tell_sizes(Call& call, const OffloadedRequest& operation, const Exchange& exchange) {
    call.decided_by = 0;
    call.from_others = 0;
    call.any_large = false;
    for (std::size_t i = 0; i < exchange.recvs.size(); ++i) {
        call.decided_by = std::max<std::uint64_t>(call.decided_by, exchange.recvs[i].bytes());
        call.any_large = call.any_large || operation.recv_bytes[i] != 0;
        if (exchange.recvs[i].peer != operation.team->rank) call.from_others += operation.recv_bytes[i];
    }
    for (std::size_t i = 0; i < exchange.sends.size(); ++i) {
        call.decided_by = std::max<std::uint64_t>(call.decided_by, exchange.sends[i].bytes());
        call.any_large = call.any_large || operation.send_bytes[i] != 0;
    }
}

}  // namespace

void Exchange::clear() {
    sends.clear();
    recvs.clear();
    first_send = 0;
    send_copies = false;
}

Exchange& fresh_exchange() {
    thread_local Exchange exchange;
    exchange.clear();
    return exchange;
}

offpath_status_t divide(Call& call, OffloadedRequest& operation, const Exchange& exchange,
                        DeviceExchange& device) {
    // The host's MPI counts a message's bytes in an int.
    const std::uint64_t threshold = std::min<std::uint64_t>(call.pairs_from, INT_MAX);
    Places sent =
        place(exchange.sends, exchange.send_copies, threshold, operation.send_bytes, operation.send_offsets);
    share_places(exchange.sends, sent, operation);
    const Places received =
        place(exchange.recvs, false, threshold, operation.recv_bytes, operation.recv_offsets);
    if (sent.staged && !stage_sends(exchange, sent, operation)) return OFFPATH_ERR_MEMORY;
    if (received.staged && !stage_receives(exchange.recvs, received, operation)) return OFFPATH_ERR_MEMORY;
    tell_sizes(call, operation, exchange);
    // A block without bytes for the device may have its own offset in the staging memory.
    device = {sent.staged ? operation.send_staging.address : sent.base,
              operation.send_bytes.data(),
              operation.send_offsets.data(),
              received.staged ? operation.recv_staging.address : received.base,
              operation.recv_bytes.data(),
              operation.recv_offsets.data()};
    return OFFPATH_OK;
}

void start_small(const Exchange& exchange, SmallLane lane, OffloadedRequest& operation) {
    const SmallMessages& messages = operation.team->small_messages;
    int result = MPI_SUCCESS;
    const auto next = [&]() -> MPI_Request* {
        operation.host_parts.push_back(MPI_REQUEST_NULL);
        return &operation.host_parts.back();
    };
    for (std::size_t i = 0; i < exchange.recvs.size() && result == MPI_SUCCESS; ++i) {
        const Block& block = exchange.recvs[i];
        if (operation.recv_bytes[i] != 0 || block.bytes() == 0) continue;
        result = messages.receive(block.elements, static_cast<int>(block.count), block.type, block.peer, lane,
                                  next());
    }
    const std::size_t sends = exchange.sends.size();
    for (std::size_t step = 0; step < sends && result == MPI_SUCCESS; ++step) {
        const std::size_t i = (exchange.first_send + step) % sends;
        const Block& block = exchange.sends[i];
        if (operation.send_bytes[i] != 0 || block.bytes() == 0) continue;
        if (exchange.send_copies) {
            const void* packed =
                at(operation.send_staging.address, static_cast<MPI_Aint>(operation.send_offsets[i]));
            result =
                messages.send(packed, static_cast<int>(block.bytes()), MPI_PACKED, block.peer, lane, next());
        } else {
            result = messages.send(block.elements, static_cast<int>(block.count), block.type, block.peer,
                                   lane, next());
        }
    }
    operation.host_failed = result != MPI_SUCCESS;
}

bool plausible_counts(Counts counts, int n) {
    if (counts == nullptr) return false;
    for (int i = 0; i < n; ++i) {
        if (counts[i] < 0) return false;
    }
    return true;
}

bool any_elements(Counts counts, int n) {
    for (int i = 0; i < n; ++i) {
        if (counts[i] > 0) return true;
    }
    return false;
}

TypeUse use_type_of(MPI_Datatype type, bool any, const void* elements) {
    if (any) return use_type(type, elements);
    TypeUse nothing;
    nothing.usable = true;
    return nothing;
}

}  // namespace offpath::mpi
