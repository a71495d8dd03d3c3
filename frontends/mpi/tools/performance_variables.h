// The performance variables that offpath adds to those of the host's MPI: the counters of all parts
// (runtime/counter.h). They are of this process; their sum over the ranks is in the summary. Threads: any.
#pragma once

#include <vector>

#include "runtime/counter.h"

namespace offpath::mpi::tools {

const std::vector<const Counter*>& performance_variables();

}  // namespace offpath::mpi::tools
