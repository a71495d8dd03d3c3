// `offpath-sim --program`: replays a profile and tells what it took.
#pragma once

#include "sim/machine/cluster.h"

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace offpath::sim {

// What --program prints. docs/advise.md has the fields. `shape` must have as many ranks as the profile:
// throws std::invalid_argument otherwise, and what reading and replaying throw.
nlohmann::json replay_program(const std::string& folder, const Platform& platform, const ClusterShape& shape);

}  // namespace offpath::sim
