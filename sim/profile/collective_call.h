// The collectives of a profile: their names, and their schedules.
#pragma once

#include "collectives/collectives.h"
#include "sim/profile/profile.h"
#include "sim/programs/host_algorithms.h"

#include <optional>
#include <string>

namespace offpath::sim {

struct CollectiveName {
    std::string name;       // of the blocking form, in small letters
    bool blocking = false;  // the call itself
};

// Nothing: the call is no collective.
std::optional<CollectiveName> collective_name(const std::string& call);

// The schedule, by the algorithms of the host's MPI, which is called like that, or of the product. Nothing:
// the simulator does not know it.
std::optional<schedule::Schedule> build_collective(const std::string& name, collectives::TeamShape team,
                                                   const ProfiledCall& call, std::optional<HostCall> of_host);

}  // namespace offpath::sim
