// The algorithms that Open MPI 4.1 chooses for its non-blocking collectives (libnbc), and for its short
// blocking allreduces (coll/tuned), where they differ from the product's: one message for each pair at once,
// trees, and reductions that halve the vector (Rabenseifner: "Optimization of collective reduction
// operations", 2004). Pure, as the builders of collectives/collectives.h; slots are theirs.
#pragma once

#include "collectives/collectives.h"
#include "sim/machine/platform.h"

#include <optional>
#include <string>

namespace offpath::sim {

// In which order a rank sends in an exchange.
enum class SendOrder : std::uint8_t {
    staggered,  // each begins with its successor: blocking calls
    by_rank     // all begin with rank 0: libnbc
};

// Network cards serve all messages at once, which whole messages in turn resemble only if targets differ. So
// only sockets are simulated by rank.
inline SendOrder send_order(const Platform& platform, bool blocking) {
    return platform.protocol == Protocol::stream && !blocking ? SendOrder::by_rank : SendOrder::staggered;
}

// How a program calls it.
struct HostCall {
    SendOrder order = SendOrder::staggered;
    bool blocking = false;
};

inline HostCall host_call(const Platform& platform, bool blocking) {
    return {send_order(platform, blocking), blocking};
}

struct HostCollective {
    std::string name;  // of the blocking form, in small letters, without MPI_
    std::uint64_t bytes = 0;
    std::uint32_t root = 0;
    collectives::Reducing what{schedule::DataType::float64, schedule::Reduction::sum};
    SendOrder order = SendOrder::staggered;
    bool blocking = false;
};

// Nothing: the product's algorithm is as good a picture.
std::optional<schedule::Schedule> build_of_host(const HostCollective& call, collectives::TeamShape team);

}  // namespace offpath::sim
