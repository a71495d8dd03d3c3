// Whether ranks can hold what a run asks for: told before atoms are made, rather than when memory ends.
#pragma once

#include "minimd/base/settings.h"
#include "minimd/domain/decomposition.h"

namespace minimd {

// `atoms`: of the whole system. Throws UsageError with what would help, on every rank alike: for a box that
// is no number in the run's precision, more atoms than a rank can count, or a cutoff that reaches over more
// copies of the box, or atoms, than that.
void check_feasible(const Settings& settings, const Decomposition& decomposition, double atoms);

}  // namespace minimd
