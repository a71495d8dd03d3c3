// The results as one JSON line, for scripts and studies.
#pragma once

#include <nlohmann/json.hpp>

#include "minimd/base/settings.h"
#include "minimd/report/summary.h"

namespace minimd {

// Times in seconds: total of the slowest rank, the others means over the ranks. ns_per_atom_step is null
// when there were no steps.
nlohmann::ordered_json as_json(const Settings& settings, const Summary& summary);

// Writes that to where settings.json says, if anywhere; to standard output where that fails, so that nothing
// is lost. Called on rank 0. Throws UsageError when the file cannot be written.
void write_json(const Settings& settings, const Summary& summary);

}  // namespace minimd
