// Windows in target regions, for the files that define MPI's calls on them. Threads: any. Errors: MpiError.
#pragma once

#include "openmp/mpi/communicators.h"
#include "openmp/mpi/errors.h"

#include <offpath/windows.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace offpath::region_mpi {

// What a rank exposes, as the host's front end tells it, too.
struct Exposed {
    std::uint64_t bytes = 0, unit = 1;
};

struct Window {
    offpath_window_h window = nullptr;
    SharedTeam team;
    std::vector<Exposed> exposed;  // by member of the team
    bool mixed = false;            // of hosts and devices
    std::atomic<bool> to_hosts{false};
};

Window& window_of(MPI_Win handle);

// The member of the window's team that `target` is: of a mixed window, the end that the key names.
std::uint32_t target_in(const Window& window, int target);

// A call whose body gets the window.
template <typename Body>
int in_window(const char* call, MPI_Win handle, Body&& body) {
    return in_call(call, MPI_COMM_WORLD, [&](Communicator&) { body(window_of(handle)); });
}

}  // namespace offpath::region_mpi
