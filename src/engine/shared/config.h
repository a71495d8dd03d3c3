// What an engine may use, what it has done, and what it takes from the world around it.
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
    std::uint32_t reduce_tiles = 16;     // for operands without a pointer; two at least
    std::uint64_t most_scratch_bytes = std::uint64_t{256} << 20;  // of one running schedule
    std::uint64_t scratch_kept_bytes = 64 << 20;                  // for the next ones
    std::uint64_t stored_bytes = 256 << 20;                       // of keyed messages that no receive has met
    std::uint64_t early_bytes = std::uint64_t{1} << 30;  // of messages of a job that come before their time
    std::uint64_t visit_bytes = 256 << 20;  // of operands and results on their way to and from windows
    // After so much at windows in a round, what is not small waits for the next one (onesided/turns.cpp).
    std::uint64_t round_pieces = 1024, round_bytes = 1 << 20;
};

struct Counters {
    std::uint64_t instances_started = 0, instances_done = 0, instances_failed = 0;
    std::uint64_t bytes_sent = 0, bytes_received = 0, bytes_local = 0;
    std::uint64_t messages_sent = 0, messages_received = 0;
    std::uint64_t messages_refused = 0;  // of strangers, or for what the sender has no part in
    std::uint64_t bytes_reduced = 0;
    std::uint64_t most_visit_bytes = 0;                         // at one time
    std::uint64_t most_round_pieces = 0, most_round_bytes = 0;  // at windows
};

// What an engine takes from outside beside its transport and its ranks' memory. With a clock, a seed and a
// transport that repeat, a run repeats exactly.
struct Surroundings {
    const Clock* clock = nullptr;       // null: the steady clock; must outlive the engine
    std::optional<std::uint64_t> seed;  // of its tokens; none: numbers that nobody can guess
    bool yields = true;                 // the core to others, after a copy in a round with nothing else to do
};

}  // namespace offpath::engine
