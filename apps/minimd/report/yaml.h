// miniMD's YAML report: the same keys in the same order. Where miniMD prints pointers, values stand.
#pragma once

#include <array>
#include <cstdio>
#include <ctime>
#include <string>

#include "minimd/base/atoms.h"
#include "minimd/base/settings.h"
#include "minimd/report/summary.h"

namespace minimd {

// miniMD-YEAR-MONTH-DAY-HOUR-MINUTE-SECOND.yaml of the local time.
std::string yaml_name(std::time_t now);

void print_yaml(std::FILE* out, const Settings& settings, const System& system,
                const std::array<int, 3>& bins, const Summary& summary);

// Writes that to a file of the name above in the working directory, and to standard output, as settings say.
// Called on rank 0. Throws UsageError when the file cannot be written.
void write_yaml(const Settings& settings, const System& system, const std::array<int, 3>& bins,
                const Summary& summary);

}  // namespace minimd
