// An engine's limits, its counters, and what it takes from its environment.
#pragma once

#include "base/clock.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace offpath::engine {

struct Config {
    std::size_t chunk_bytes = 512 << 10;  // of what goes through bounce buffers, and of rendezvous messages
    std::uint32_t send_bounces = 16, recv_bounces = 16;
    std::uint32_t chunks_in_flight = 4;  // per transfer
    std::uint32_t reduce_tiles = 16;     // for operands without a pointer; at least two
    std::uint64_t most_scratch_bytes = std::uint64_t{256} << 20;  // of one running schedule
    std::uint64_t scratch_kept_bytes = 64 << 20;                  // for the next ones
    std::uint64_t stored_bytes = 256 << 20;                       // of keyed messages that no receive has met
    std::uint64_t early_bytes = std::uint64_t{1} << 30;           // of early messages, for each job
    std::uint64_t visit_bytes = 256 << 20;  // of operands and results in transit to and from windows
    // After this much work on windows in a round, operations that are not small wait for the next round
    // (onesided/turns.cpp).
    std::uint64_t round_pieces = 1024, round_bytes = 1 << 20;
    // How many peers of ended jobs are known at least; the memory for them is taken at once (1 MiB).
    std::size_t ended_peers = 1 << 13;
};

// Payloads of more than eager_bytes that have come from other proxies, by the copies that proxies made of
// them on the way. To stage what the network card could have moved counts as a copy.
struct Copies {
    std::uint64_t direct = 0, once = 0, more = 0;  // in bytes

    void count(unsigned copies, std::uint64_t bytes) {
        (copies == 0 ? direct : copies == 1 ? once : more) += bytes;
    }
};

struct Counters {
    std::uint64_t instances_started = 0, instances_done = 0, instances_failed = 0;
    std::uint64_t bytes_sent = 0, bytes_received = 0, bytes_local = 0;
    Copies copies;
    std::uint64_t messages_sent = 0, messages_received = 0;
    std::uint64_t messages_refused = 0;  // from unknown senders, or for what the sender has no part in
    std::uint64_t bytes_reduced = 0;
    std::uint64_t most_visit_bytes = 0;                         // at one time
    std::uint64_t most_round_pieces = 0, most_round_bytes = 0;  // at windows
};

// What an engine takes from outside, besides its transport and its ranks' memory. With a repeatable clock,
// seed and transport, a run repeats exactly.
struct Surroundings {
    const Clock* clock = nullptr;       // null: the steady clock; must outlive the engine
    std::optional<std::uint64_t> seed;  // for its tokens; none: unpredictable tokens
    bool yields = true;                 // yield the core after a copy in a round with no other work
};

}  // namespace offpath::engine
