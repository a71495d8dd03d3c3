// Collectives in which no rank knows all sizes, but both ends of each pair of ranks know the size of the
// pair. Each pair therefore decides for itself: from the switch-over on it uses the device, below it a
// message of the host's MPI (small_messages.h). Every rank starts the device's part, even if it is empty,
// because the collectives of a team must come in the same order on all its ranks.
//
// Several blocks may go between the same two ranks. The device matches its blocks in their order, and so does
// the host with the blocks below the switch-over; both ends divide the blocks in the same way.
#pragma once

#include <mpi.h>

#include <vector>

#include "call.h"

namespace offpath::mpi {

// The data for one rank, or from one rank.
struct Block {
    int peer;
    char* elements;
    std::int64_t count;
    MPI_Datatype type;
    TypeUse use;

    std::size_t bytes() const { return static_cast<std::size_t>(count) * use.bytes; }
};

struct Exchange {
    std::vector<Block> sends, recvs;
    // The index of the host's message that goes first; not 0 only if all peers differ.
    std::size_t first_send = 0;
    // In place: the data must be copied, because they would be overwritten before they are sent.
    bool send_copies = false;

    void clear();
};
// Belongs to this thread and is empty; reused so that blocks need no new memory in each call.
Exchange& fresh_exchange();

// The blocks as the device sees them: blocks below the switch-over have no bytes.
struct DeviceExchange {
    const void* from;
    const std::size_t* send_bytes;
    const std::size_t* send_offsets;  // relative to `from`
    void* to;
    const std::size_t* recv_bytes;
    const std::size_t* recv_offsets;
};

// Finds memory for the blocks; large ones are for the device, in arrays of the operation. Sets the sizes in
// `call`.
offpath_status_t divide(Call& call, OffloadedRequest& operation, const Exchange& exchange,
                        DeviceExchange& device);

// Starts the messages of the small blocks. If one cannot be started, the operation ends with an error once
// the device is done.
void start_small(const Exchange& exchange, SmallLane lane, OffloadedRequest& operation);

template <typename StartDevice>
offpath_status_t start_exchange(Call& call, OffloadedRequest& operation, const Exchange& exchange,
                                StartDevice start) {
    DeviceExchange device{};
    offpath_status_t status = divide(call, operation, exchange, device);
    if (status == OFFPATH_OK) status = start(device);
    if (status == OFFPATH_OK) start_small(exchange, call.lane, operation);
    return status;
}

// Whether the counts are valid.
bool plausible_counts(Counts counts, int n);
bool any_elements(Counts counts, int n);

// A rank without elements may pass an invalid type. Some MPI libraries never check it, and this rank must
// decide as the others do.
inline bool plausible_type(MPI_Datatype type, bool any) {
    return !any || type != MPI_DATATYPE_NULL;
}
TypeUse use_type_of(MPI_Datatype type, bool any, const void* elements);

}  // namespace offpath::mpi
