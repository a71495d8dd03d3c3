// How windows come and go: what the ranks agree on, and the counts for the summary. Internal to the folder.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "windows.h"

namespace offpath::mpi {

int window_keyval();
// The window takes the device's way for the first time.
void count_on_device(Window& window);
// Windows of this rank's lead: that were on the device, and that the host's MPI served.
std::uint64_t windows_made();
std::uint64_t windows_left();
// "2 within one node"
std::string why_windows_left();

}  // namespace offpath::mpi
