// What builders of exchanges of blocks share: the slots of the two buffers, and the block that stays at its
// rank.
#pragma once

#include "collectives/collectives.h"
#include "collectives/extent.h"
#include "schedule/builder.h"

namespace offpath::collectives {

// The buffers of an exchange in which every rank has blocks for others and from others. The send buffer is
// slot 0.
struct ExchangeSlots {
    // `args`: VectorArgs or NeighborArgs.
    ExchangeSlots(schedule::Builder& builder, const auto& args)
        : send(builder.user_slot(extent(args.send_bytes, args.send_offsets))),
          recv(builder.user_slot(extent(args.recv_bytes, args.recv_offsets))) {}
    void copy_own(schedule::Builder& builder, const VectorArgs& args, std::uint32_t rank) const {
        if (args.send_bytes[rank] > 0)
            builder.copy({send, args.send_offsets[rank]}, {recv, args.recv_offsets[rank]},
                         args.send_bytes[rank]);
    }
    const std::uint32_t send, recv;
};

// The buffers of an allgather. In place there is one, of slot 0, with the own block in it.
struct AllgatherSlots {
    AllgatherSlots(schedule::Builder& builder, std::uint32_t rank, std::span<const std::uint64_t> bytes,
                   std::span<const std::uint64_t> offsets, bool in_place)
        : own(in_place ? schedule::BufferRef{0, offsets[rank]}
                       : schedule::BufferRef{builder.user_slot(bytes[rank]), 0}),
          place{builder.user_slot(extent(bytes, offsets)), offsets[rank]},
          own_bytes(in_place ? 0 : bytes[rank]) {}
    void copy_own(schedule::Builder& builder) const {
        if (own_bytes > 0) builder.copy(own, place, own_bytes);
    }
    const schedule::BufferRef own, place;  // of the own block: where it comes from, and where it belongs
    const std::uint64_t own_bytes;         // to be copied
};

}  // namespace offpath::collectives
