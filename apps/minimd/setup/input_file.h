// miniMD's input file: 14 lines, each of which begins with its values and may end with a remark.
//
// Lines 1-2 are a title; 3 units (lj, metal); 4 data file or none; 5 force (lj, eam); 6 epsilon and sigma; 7
// unit cells in x, y, z; 8 steps; 9 time step; 10 temperature; 11 density; 12 steps between neighbour builds;
// 13 cutoff and skin; 14 steps between thermodynamic lines (0: first and last step only).
#pragma once

#include <mpi.h>

#include <istream>
#include <string>

#include "minimd/base/settings.h"

namespace minimd {

// The file that is read, as by miniMD, when the command line names none.
inline constexpr const char* default_input_file = "in.lj.miniMD";

// Sets the values that the lines give. Throws UsageError with name and line.
void parse_input(std::istream& in, const std::string& name, Settings& settings);

// Reads the file at `path`, or the default file if `path` is empty. If the default file does not exist, the
// initial values of Settings are kept, and settings.notes says so. Throws UsageError on every rank.
// Collective.
void read_input_file(const std::string& path, MPI_Comm comm, Settings& settings);

}  // namespace minimd
