// The results as one line of JSON, for scripts and studies.
#pragma once

#include <nlohmann/json.hpp>

#include "minimd/base/settings.h"
#include "minimd/report/summary.h"

namespace minimd {

// Returns the results. Times are in seconds: the total is the slowest rank's, the others are means over the
// ranks. ns_per_atom_step is null if there were no steps.
nlohmann::ordered_json as_json(const Settings& settings, const Summary& summary);

// Writes the results to the place that settings.json names, if any. If that fails, writes them to standard
// output, so that nothing is lost, and throws UsageError. Called on rank 0.
void write_json(const Settings& settings, const Summary& summary);

}  // namespace minimd
