// Exchanges as libnbc of Open MPI 4.1 posts them: every rank begins with rank 0, so first messages go to the
// same rank. Pure; slots are those of the product's exchanges.
#pragma once

#include "collectives/collectives.h"

namespace offpath::sim {

schedule::Schedule alltoallv_by_rank(collectives::TeamShape team, const collectives::VectorArgs& args);
// Each rank contributes `bytes`.
schedule::Schedule allgather_by_rank(collectives::TeamShape team, std::uint64_t bytes);

}  // namespace offpath::sim
