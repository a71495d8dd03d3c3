// The work of a device that is a rank of the job: it computes for its hosts until all of them release it.
#pragma once

#include <mpi.h>

#include <vector>

#include "minimd/base/atoms.h"
#include "minimd/base/settings.h"
#include "minimd/setup/eam_tables.h"

namespace minimd {

struct ServerPlaces {
    MPI_Comm world = MPI_COMM_NULL;    // hosts and devices
    MPI_Comm devices = MPI_COMM_NULL;  // all devices
    std::vector<int> hosts;            // ranks in `world` of the hosts that this device serves
    std::vector<int> host_numbers;     // their ranks among the hosts
    std::vector<int> device_of_host;   // for each host of the job, its device's rank in `devices`
};

// Serves the hosts, and returns when they have released the device. Collective over the devices. `tables` is
// needed for Potential::eam. `lanes` is that of the hosts' kernels. `slowness` >= 1 is the number of times
// that every force is computed, to emulate a device that is slower than this core by that factor.
template <typename Real>
void serve(const Settings& settings, const ServerPlaces& places, const System& system,
           const EamTables* tables, int lanes, int slowness);

}  // namespace minimd
