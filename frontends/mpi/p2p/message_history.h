// What is known about a communicator's large messages, by peer and tag: how they are waited for
// (waited_messages.h), and whether they come without headers (shared_buffers.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "route_trial.h"
#include "settings.h"
#include "step_trial.h"
#include "waiting_habit.h"

namespace offpath::mpi::p2p {

struct MessageHistory {
    static constexpr std::size_t most = 4096;
    // Classes of sizes: powers of two, from 128 KiB on.
    static constexpr std::size_t sizes = 8;
    struct Sent {
        WaitingHabit habit;
        bool receiver_only_waits = false;  // as it reported
        bool was_of_several = false;       // the latest exchange that began with it had more messages
        bool without_headers = false;      // for ever, as the receiver was told
        bool receiver_cuts_off = false;    // for ever, as it reported
        // Of exchanges that began with it: those that were only waited for, and the others.
        std::array<RouteTrial, sizes> trials;
        std::array<StepTrial, sizes> steps;

        Sent() {
            if (job_settings.begins_with_device()) {
                steps.fill(StepTrial(RouteTrial::device));
                return;
            }
            for (RouteTrial& trial : trials)
                trial.follow_host();
        }

        bool only_waits() const { return habit.only_waits() && receiver_only_waits; }
    };
    struct Received {
        WaitingHabit habit;
        bool told = false;                             // what the sender knows of the habit
        bool told_of_cut = false;                      // the sender knows of a receive that was too short
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
    if (watches.size() >= MessageHistory::most) return find(watches, peer, tag);
    return &watches[watch_key(peer, tag)];
}

}  // namespace offpath::mpi::p2p
