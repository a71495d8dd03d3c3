// The command line: miniMD's flags, and ours.
//
// What is given there replaces what the input file says. A flag that is given twice counts as the last. The
// object has to live until settings() was called.
#pragma once

#include <mpi.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "minimd/base/settings.h"

namespace minimd {

// miniMD has flags of several letters behind one dash (-nx, -gn), which no parser of today takes: these are
// `argv` with two. Ends with a null pointer; points into `argv` and into constants.
std::vector<char*> with_double_dashes(int argc, char** argv);

class CommandLine {
  public:
    // Adds all flags to `app`.
    explicit CommandLine(CLI::App& app);
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    // Reads the input file and applies what was parsed. Throws UsageError on every rank alike. Collective.
    Settings settings(MPI_Comm comm) const;

  private:
    void add_minimd_flags(CLI::App& app);
    void add_ignored_flags(CLI::App& app);
    void add_own_flags(CLI::App& app);
    void apply_size(Settings& settings) const;

    std::string input_file_;
    std::optional<int> steps_, size_;
    std::array<std::optional<int>, 3> cells_;
    std::optional<Units> units_;
    std::optional<Potential> potential_;
    std::optional<std::string> data_file_;
    Settings flags_;  // what has no counterpart in the input file
    std::vector<std::string> ignored_;
};

}  // namespace minimd
