// What a departure knows: shared by the parts that count letters (departure.cpp) and that ask for the
// decision (passages.cpp).
#pragma once

#include "departure.h"

#include <limits>
#include <map>
#include <mutex>
#include <set>

namespace offpath::mpi {

// Guards the letters and what they change. No thread waits for another rank while it holds this mutex.
extern std::mutex departures_mutex;

struct Departure::State {
    static constexpr std::uint64_t all_calls = std::numeric_limits<std::uint64_t>::max();

    std::uint32_t number = 0, persistent = 0;
    std::shared_ptr<const std::vector<Member>> members;
    // Of a communicator: its persistent collectives so far, and letters for those that this rank has not
    // made.
    std::uint32_t persistent_made = 0;
    std::vector<Letter> early;
    std::atomic<std::uint64_t> calls{0};
    // A call raises the count and then reads `reported`. A report sets `reported` and then reads the count.
    // So a call that another thread makes meanwhile is in the report, or is held back, or both.
    std::atomic<bool> reported{false};
    // Of all reports, and of what was given up. Does not change any more once `decided` is set.
    std::atomic<std::uint64_t> last_on_device{0};
    // The largest number that a rank has given up.
    std::atomic<std::uint64_t> given_up{0};
    std::atomic<bool> decided{false};
    std::atomic<bool> closed{false};
    std::atomic<bool> failed{false};      // a call has, without a loss
    std::set<int> heard_from, committed;  // ranks in the world
    std::uint64_t reported_calls = 0;     // by this rank
    std::map<int, Vote> votes;            // of all that have committed; constant once `decided` is set
    std::set<int> have_given_up;          // ranks
    const Departure* departure = nullptr;

    bool is_decided() const { return decided.load(std::memory_order_acquire); }
};

}  // namespace offpath::mpi
