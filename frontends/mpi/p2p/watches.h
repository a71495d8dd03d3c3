// Watches: what is known of a communicator's large messages, by peer and tag: how they are waited for
// (waits.h), and whether they come without headers (shared_buffers.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "habit.h"
#include "trial.h"

namespace offpath::mpi::p2p {

struct Watches {
    static constexpr std::size_t most = 4096;
    // By the binary magnitude of their bytes, from 128 KiB on.
    static constexpr std::size_t sizes = 8;
    struct Sent {
        Habit habit;
        bool receiver_only_waits = false;  // as it told
        bool was_of_several = false;       // the latest exchange that began with it had more messages
        bool without_headers = false;      // for ever, as the receiver was told
        std::array<Trial, sizes> trials;   // of exchanges that began with it
    };
    struct Received {
        Habit habit;
        bool told = false;                             // what the sender knows of the habit
        bool latest_by_host = false;                   // the latest one came without a header
        bool shares_a_buffer = false;                  // the sender was told so
        std::optional<std::uint32_t> without_headers;  // from this number on
        std::uint64_t usual_ns = 0;                    // between post and end, when it was only waited for
    };
    std::unordered_map<std::uint64_t, Sent> sent;
    std::unordered_map<std::uint64_t, Received> received;
};

inline std::uint64_t watch_key(int peer, int tag) {
    return std::uint64_t{static_cast<std::uint32_t>(peer)} << 32 | static_cast<std::uint32_t>(tag);
}

// Null: there is none.
template <typename Watch>
Watch* find(std::unordered_map<std::uint64_t, Watch>& watches, int peer, int tag) {
    const auto found = watches.find(watch_key(peer, tag));
    return found == watches.end() ? nullptr : &found->second;
}

// Null: there are too many.
template <typename Watch>
Watch* find_or_make(std::unordered_map<std::uint64_t, Watch>& watches, int peer, int tag) {
    if (watches.size() >= Watches::most) return find(watches, peer, tag);
    return &watches[watch_key(peer, tag)];
}

}  // namespace offpath::mpi::p2p
