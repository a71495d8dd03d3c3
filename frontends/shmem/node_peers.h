// Which PEs share this node, and the mappings of their memory. A PE describes its segments in a Card. A PE on
// the same system with the same host name tries to open the files behind them. If that is refused, the PE is
// treated like one of another node.
#pragma once

#include "memory_file.h"
#include "world.h"

#include <array>
#include <cstdint>
#include <span>

namespace offpath::shmem {

// Exchanged between all PEs. Trivially copyable.
struct Card {
    std::uint64_t host = 0;  // a hash of the names of the system and of its process namespace
    std::int32_t pid = 0;
    std::uint32_t failed = 0;
    struct OfSegment {
        std::uint64_t address = 0, bytes = 0;
        FileIdentity file;
        std::int32_t fd = -1;
        std::uint32_t shared = 0;  // whether the PE's device has it mapped too
    };
    std::array<OfSegment, segment_count> segments;
};

std::uint64_t this_host();

// Fills world.peers from the cards of all PEs. `map`: map the memory that can be mapped. Logs once, at info
// level, what cannot be mapped.
void open_peers(std::span<const Card> cards, bool map);
void close_peers();

}  // namespace offpath::shmem
