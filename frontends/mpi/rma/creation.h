// How windows come and go: what the ranks agree on, and the counts for the summary. Internal to the folder.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "windows.h"

namespace offpath::mpi {

int window_keyval();
// Windows of this rank's lead: on the device, and left to the host's MPI.
std::uint64_t windows_made();
std::uint64_t windows_left();
// "2 within one node"
std::string why_windows_left();

}  // namespace offpath::mpi
