// Which PEs share this node, and their memory mapped here. A PE describes its segments in a Card; whoever
// runs on the same system under the same host name tries to open the files behind them. Where that is
// refused, the PE is as one of another node.
#pragma once

#include "memory_file.h"
#include "world.h"

#include <array>
#include <cstdint>
#include <span>

namespace offpath::shmem {

// Exchanged between all PEs. Trivially copyable.
struct Card {
    std::uint64_t host = 0;  // a hash of what names the system and its processes
    std::int32_t pid = 0;
    std::uint32_t failed = 0;
    struct OfSegment {
        std::uint64_t address = 0, bytes = 0;
        FileIdentity file;
        std::int32_t fd = -1;
        std::uint32_t shared = 0;  // with the PE's device
    };
    std::array<OfSegment, segment_count> segments;
};

std::uint64_t this_host();

// Fills world.peers from the cards of all PEs; `map`: with what can be mapped. Says what cannot be mapped
// once, at info level.
void open_peers(std::span<const Card> cards, bool map);
void close_peers();

}  // namespace offpath::shmem
