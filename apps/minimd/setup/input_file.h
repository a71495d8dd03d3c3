// miniMD's input file: 14 lines, of which each begins with its values and ends with a remark.
//
// Line 1-2 are a title; 3 units (lj, metal); 4 data file or none; 5 force (lj, eam); 6 epsilon and sigma;
// 7 unit cells in x, y, z; 8 steps; 9 time step; 10 temperature; 11 density; 12 steps between neighbour
// builds; 13 cutoff and skin; 14 steps between thermodynamic lines, 0: first and last only.
#pragma once

#include <mpi.h>

#include <istream>
#include <string>

#include "minimd/base/settings.h"

namespace minimd {

// The input file that miniMD reads when none is named.
inline constexpr const char* default_input_file = "in.lj.miniMD";

// Sets what the lines say. Throws UsageError with name and line.
void parse_input(std::istream& in, const std::string& name, Settings& settings);

// Reads the file at `path`, the default one if empty. Where the default one is missing, the values that
// Settings begins with are kept, and settings.notes says so. Collective.
void read_input_file(const std::string& path, MPI_Comm comm, Settings& settings);

}  // namespace minimd
