// The header of a LAMMPS data file.
#pragma once

#include <cstdint>

#include "minimd/base/atoms.h"
#include "minimd/setup/line_source.h"

namespace minimd {

struct DataHeader {
    std::int64_t atoms = 0;
    int types = 1;
    Vec3 lo{}, hi{};
};

// Reads the header from the first line on. Stops at the title of the first section, which is then the
// source's current line, or at the end of the file. Throws UsageError.
DataHeader read_data_header(LineSource& lines);

// Whether the current line is the title of a section of LAMMPS data files, of any atom style.
bool is_section_title(const LineSource& lines);

}  // namespace minimd
