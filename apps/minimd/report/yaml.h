// miniMD's YAML report, with the same keys in the same order. Where miniMD prints pointers, this report has
// the values.
#pragma once

#include <array>
#include <cstdio>
#include <ctime>
#include <string>

#include "minimd/base/atoms.h"
#include "minimd/base/settings.h"
#include "minimd/report/summary.h"

namespace minimd {

// Returns miniMD-YEAR-MONTH-DAY-HOUR-MINUTE-SECOND.yaml for the local time `now`.
std::string yaml_name(std::time_t now);

void print_yaml(std::FILE* out, const Settings& settings, const System& system,
                const std::array<int, 3>& bins, const Summary& summary);

// Writes the report to a file of that name in the working directory, and to standard output, as the settings
// say. Called on rank 0. Throws UsageError if the file cannot be written.
void write_yaml(const Settings& settings, const System& system, const std::array<int, 3>& bins,
                const Summary& summary);

}  // namespace minimd
