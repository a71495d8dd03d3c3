// Standard output in miniMD's format, for scripts that read it.
//
// Prints nothing on ranks other than 0, and nothing where standard output is reserved for the JSON line.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

#include "minimd/base/atoms.h"
#include "minimd/base/settings.h"
#include "minimd/report/summary.h"

namespace minimd {

// The name of this program in headers and reports.
inline constexpr const char* variant_name = "offpath-minimd 0.1 (MPI+OpenMP)";

// The numbers of cells that miniMD would divide the box into. They are printed where this program has none of
// its own.
std::array<int, 3> usual_bins(const Settings& settings, const System& system);

class Screen {
  public:
    Screen(const Settings& settings, int rank, std::FILE* out = stdout);

    void begin() const;  // before the atoms are made
    // Prints all settings. Called when the atoms have been made.
    void header(const System& system, int ranks, const std::array<int, 3>& bins) const;
    void start() const;  // before the first step
    void thermo(const ThermoRow& row) const;
    void summary(const Summary& summary) const;
    // Prints a remark as a line that begins with '#'. settings.notes are such remarks.
    void note(const std::string& text) const;

  private:
    const Settings& settings_;
    std::FILE* out_;  // null: print nothing
};

}  // namespace minimd
