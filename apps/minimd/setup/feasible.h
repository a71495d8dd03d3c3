// Checks whether ranks can hold what a run asks for, before atoms are made and memory runs out.
#pragma once

#include "minimd/base/settings.h"
#include "minimd/domain/decomposition.h"

namespace minimd {

// `atoms` is the number of atoms of the whole system. Throws UsageError with a remedy, on every rank, in
// three cases: the box cannot be represented in the run's precision; a rank would have more atoms than it can
// count; or the cutoff reaches over more copies of the box, or more atoms, than a rank can handle.
void check_feasible(const Settings& settings, const Decomposition& decomposition, double atoms);

}  // namespace minimd
