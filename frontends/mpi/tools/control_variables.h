// The control variables that offpath adds to those of the host's MPI: the settings of variables.json that
// the front end reads, under their names in small letters. Values are texts, as in the environment.
//
// Before MPI_Init, a write changes the environment of this process, which MPI_Init reads. Afterwards only
// `offpath` and `offpath_ops` can be written: they switch offloading as `offpath control` does
// (tuning/switches.h). Threads: any; before MPI_Init, no other thread may read the environment during a
// write.
#pragma once

#include <span>
#include <string>

namespace offpath::mpi::tools {

struct ControlVariable {
    const char* variable;  // of the environment
    const char* meaning;
    bool shared;  // rank 0's value holds for all ranks
};

std::span<const ControlVariable> control_variables();
// "offpath_min_bytes"
std::string name_of(const ControlVariable& variable);

// The text in force; empty: the default.
std::string value_of(const ControlVariable& variable);
// False: it cannot be set to this now.
bool set_value(const ControlVariable& variable, const std::string& text);

// In MPI_Init: gives rank 0's texts to all ranks. Collective over the world.
void agree_on_values();

}  // namespace offpath::mpi::tools
