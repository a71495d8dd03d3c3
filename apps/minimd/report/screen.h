// Standard output in miniMD's format, for scripts that read it.
//
// Says nothing on other ranks than 0, and nothing where standard output belongs to the JSON line.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

#include "minimd/base/atoms.h"
#include "minimd/base/settings.h"
#include "minimd/report/summary.h"

namespace minimd {

// Who said it, in headers and in reports.
inline constexpr const char* variant_name = "offpath-minimd 0.1 (MPI+OpenMP)";

// Numbers of cells that miniMD would divide the box into; what is printed where the engine has no own.
std::array<int, 3> usual_bins(const Settings& settings, const System& system);

class Screen {
  public:
    Screen(const Settings& settings, int rank, std::FILE* out = stdout);

    void begin() const;  // before the atoms are made
    // After that: all settings.
    void header(const System& system, int ranks, const std::array<int, 3>& bins) const;
    void start() const;  // before the first step
    void thermo(const ThermoRow& row) const;
    void summary(const Summary& summary) const;
    // A remark, as a line that begins with '#'; settings.notes are such remarks.
    void note(const std::string& text) const;

  private:
    const Settings& settings_;
    std::FILE* out_;  // null: silent
};

}  // namespace minimd
