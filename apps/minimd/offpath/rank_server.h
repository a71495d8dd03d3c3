// What a device that is a rank of the job does: it computes for its hosts until all let it go.
#pragma once

#include <mpi.h>

#include <vector>

#include "minimd/base/atoms.h"
#include "minimd/base/settings.h"
#include "minimd/setup/eam_tables.h"

namespace minimd {

struct ServerPlaces {
    MPI_Comm world = MPI_COMM_NULL;    // of hosts and devices
    MPI_Comm devices = MPI_COMM_NULL;  // all devices
    std::vector<int> hosts;            // ranks in `world` of those that it serves
    std::vector<int> host_numbers;     // their ranks among the hosts
    std::vector<int> device_of_host;   // for each host of the job: its device's rank in `devices`
};

// Collective over the devices. `tables`: for Potential::eam. `lanes`: of the hosts' kernels. `slowness`:
// every force is computed so many times, to stand for a device that is so much slower than this core; >= 1.
// Blocks until the hosts are done.
template <typename Real>
void serve(const Settings& settings, const ServerPlaces& places, const System& system,
           const EamTables* tables, int lanes, int slowness);

}  // namespace minimd
