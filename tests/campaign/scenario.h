// Scenario: what a seed stands for: the size of a small cluster, its network, and a list of steps. A step is
// work of ranks, or a fault. Each step has a seed of its own, so a scenario with fewer steps does in the
// remaining ones what the whole did. Pure.
#pragma once

#include "memory/host_memory.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace offpath::campaign {

struct Step {
    enum class Kind : std::uint8_t {
        // work
        collective,  // one on all ranks
        basic,       // messages from one rank to another
        any_source,  // two messages, received from anybody
        keyed,       // a message by key; it may be stored, or its receive canceled and made again
        put,
        get,
        update,     // atomic additions, some of which fetch
        increment,  // lock, get, put, unlock
        flush,
        pause,  // some rounds pass
        // faults
        close_rank,  // a rank ends without a farewell
        kill_proxy,  // a proxy dies
        short_stop,  // a proxy stands still, for less time than makes it lost
        long_stop,   // for more
        lose_link,   // the connections of two proxies break
        forbid,      // the memory of a rank can no longer be accessed
        rubbish,     // a stranger sends nonsense to all proxies
    };
    Kind kind = Kind::pause;
    std::uint64_t seed = 0;
};
const char* to_string(Step::Kind kind);
constexpr bool is_fault(Step::Kind kind) {
    return kind >= Step::Kind::close_rank;
}

struct Scenario {
    std::uint64_t seed = 0;
    std::uint32_t ranks = 2, proxies = 2;
    memory::BackEnd memory = memory::BackEnd::map;
    bool shuffled = false;  // messages overtake each other
    double delay_message = 0, delay_completion = 0, fail_send = 0;
    std::size_t eager_bytes = 8 << 10;
    std::size_t chunk_bytes = 4096;
    bool advance_first = false;
    std::vector<Step> steps;

    std::string text() const;  // one line
};

// The same seed gives the same scenario.
Scenario draw(std::uint64_t seed);

}  // namespace offpath::campaign
