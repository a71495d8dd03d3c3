// Collectives of which no rank knows all sizes, but both ends of each pair of ranks know the pair's. So each
// pair decides for itself: from the switch-over on it goes to the device, below it as a message of the host's
// MPI (small_messages.h). The device's part is started on every rank, be it empty, since the
// collectives of a team come in one order on all its ranks.
//
// Several blocks may go between the same two ranks. They are matched in their order, on the device and, among
// those below the switch-over, on the host; both ends divide them in the same way.
#pragma once

#include <mpi.h>

#include <vector>

#include "call.h"

namespace offpath::mpi {

// What goes to, or comes from, one rank.
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
    std::size_t first_send = 0;  // which message of the host's goes first; not 0 only if all peers differ
    bool send_copies = false;    // in place: what is sent would be overwritten before

    void clear();
};
// Of this thread, empty; so that blocks need no new memory in each call.
Exchange& fresh_exchange();

// The device's view: blocks i below the switch-over have no bytes.
struct DeviceExchange {
    const void* from;
    const std::size_t* send_bytes;
    const std::size_t* send_offsets;  // from `from`
    void* to;
    const std::size_t* recv_bytes;
    const std::size_t* recv_offsets;
};

// Makes places for the blocks; large ones are for the device, in arrays of the operation. Sets what `call`
// tells of the sizes.
offpath_status_t divide(Call& call, Operation& operation, const Exchange& exchange, DeviceExchange& device);

// Starts the messages of the small ones. One that cannot be started ends the operation with an error, once
// the device is done.
void start_small(const Exchange& exchange, SmallLane lane, Operation& operation);

template <typename StartDevice>
offpath_status_t start_exchange(Call& call, Operation& operation, const Exchange& exchange,
                                StartDevice start) {
    DeviceExchange device{};
    offpath_status_t status = divide(call, operation, exchange, device);
    if (status == OFFPATH_OK) status = start_on_device([&] { return start(device); });
    if (status == OFFPATH_OK) start_small(exchange, call.lane, operation);
    return status;
}

// Counts that are counts.
bool plausible_counts(Counts counts, int n);
bool any_elements(Counts counts, int n);

// A rank that has no elements may describe them with a type that is none: some MPI libraries never look at
// it, and this rank must not decide otherwise than the others.
inline bool plausible_type(MPI_Datatype type, bool any) {
    return !any || type != MPI_DATATYPE_NULL;
}
TypeUse use_type_of(MPI_Datatype type, bool any, const void* elements);

}  // namespace offpath::mpi
