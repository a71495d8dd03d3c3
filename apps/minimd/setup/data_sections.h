// The sections of a LAMMPS data file, atom by atom.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "minimd/files/atom_record.h"
#include "minimd/setup/data_header.h"
#include "minimd/setup/line_source.h"

namespace minimd {

struct DataContents {
    std::optional<double> mass;        // of all types
    std::vector<std::string> skipped;  // titles of sections, with their lines
};

// Reads from the title that `lines` is at to the end of the file. Calls `atom` for each line of Atoms, with
// positions as the file has them, and `velocity` for each line of Velocities, with id and v set. Throws
// UsageError.
DataContents read_data_sections(LineSource& lines, const DataHeader& header,
                                const std::function<void(const AtomRecord&)>& atom,
                                const std::function<void(const AtomRecord&)>& velocity);

}  // namespace minimd
