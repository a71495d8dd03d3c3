// The command line: miniMD's flags, and this program's own.
//
// A flag overrides the input file. If a flag is given more than once, the last one counts. The object must
// live until settings() has been called.
#pragma once

#include <mpi.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "minimd/base/settings.h"

namespace offpath::command_line {
class App;
}

namespace minimd {

// Returns `argv` with two dashes before miniMD's flags of several letters (-nx, -gn), because the parser does
// not accept those with one dash. The vector ends with a null pointer. It points into `argv` and to
// constants.
std::vector<char*> with_double_dashes(int argc, char** argv);

class CommandLine {
  public:
    // Adds all flags to `app`.
    explicit CommandLine(offpath::command_line::App& app);
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    // Reads the input file and applies the parsed flags. Throws UsageError on every rank. Collective.
    Settings settings(MPI_Comm comm) const;

  private:
    void add_minimd_flags(offpath::command_line::App& app);
    void add_ignored_flags(offpath::command_line::App& app);
    void add_own_flags(offpath::command_line::App& app);
    void apply_size(Settings& settings) const;

    std::string input_file_;
    std::optional<int> steps_, size_;
    std::array<std::optional<int>, 3> cells_;
    std::optional<Units> units_;
    std::optional<Potential> potential_;
    std::optional<std::string> data_file_;
    Settings flags_;  // values that the input file does not have
    std::vector<std::string> ignored_;
};

}  // namespace minimd
