#include "minimd/offpath/places.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "minimd/kernels/kernels.h"
#include "support/mpi_program.h"

namespace minimd {

Places::Places(const Settings& settings) {
    const bool as_ranks = settings.needs_device() && settings.device == DeviceKind::ranks;
    ranks_.struct_size = sizeof ranks_;
    const offpath_status_t status = offpath_device_ranks_split(MPI_COMM_WORLD, &ranks_);
    if (status == OFFPATH_ERR_UNAVAILABLE) {
        if (as_ranks)
            throw mpi_support::UsageError(
                std::string(
                    "--offpath, --tunnel and --split-boundary need devices as ranks of the job: offpath "
                    "lab run --dpu-ranks, offpath run --dpu-ranks, or mpirun PROGRAM : PROGRAM "
                    "(docs/device-ranks.md)") +
                (settings.offpath != OffPath::none ? "; or --device-kind runtime or openmp" : ""));
        if (settings.where == Where::devices)
            throw mpi_support::UsageError(
                "--where devices: this job has no device ranks (docs/device-ranks.md)");
        return;
    }
    if (status != OFFPATH_OK) throw mpi_support::UsageError(offpath_device_ranks_problem());
    split_ = true;
    if (as_ranks) {
        pair_up(settings);
        return;
    }
    if (settings.where == Where::all) return;
    const bool simulates = (ranks_.is_device != 0) == (settings.where == Where::devices);
    role_ = simulates ? Role::simulates : Role::waits;
    simulation_ = simulates ? ranks_.kind_comm : MPI_COMM_NULL;
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    root_ = simulates ? rank : size;
    MPI_Allreduce(MPI_IN_PLACE, &root_, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
}

void Places::pair_up(const Settings& settings) {
    int rank = 0, size = 0, kind_rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(ranks_.kind_comm, &kind_rank);
    struct Entry {
        int is_device, kind_rank, peer;
    };
    const Entry mine{ranks_.is_device, kind_rank, ranks_.peers[0]};
    std::vector<Entry> all(static_cast<std::size_t>(size));
    MPI_Allgather(&mine, 3, MPI_INT, all.data(), 3, MPI_INT, MPI_COMM_WORLD);

    // The world ranks of the processes that share this rank's memory.
    MPI_Comm near = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
    int near_size = 0;
    MPI_Comm_size(near, &near_size);
    std::vector<int> near_ranks(static_cast<std::size_t>(near_size));
    MPI_Allgather(&rank, 1, MPI_INT, near_ranks.data(), 1, MPI_INT, near);
    MPI_Comm_free(&near);
    near_device_ = std::find(near_ranks.begin(), near_ranks.end(), mine.peer) != near_ranks.end();

    server_.world = MPI_COMM_WORLD;
    server_.devices = ranks_.kind_comm;
    server_.device_of_host.assign(static_cast<std::size_t>(ranks_.hosts), 0);
    int sharers = 0;
    for (int r = 0; r < size; ++r) {
        const Entry& entry = all[static_cast<std::size_t>(r)];
        if (entry.is_device != 0) continue;
        if (entry.kind_rank == 0) root_ = r;
        server_.device_of_host[static_cast<std::size_t>(entry.kind_rank)] =
            all[static_cast<std::size_t>(entry.peer)].kind_rank;
        if (ranks_.is_device != 0 && entry.peer == rank) {
            server_.hosts.push_back(r);
            server_.host_numbers.push_back(entry.kind_rank);
        }
        if (ranks_.is_device == 0 && entry.peer == mine.peer) ++sharers;
    }
    // The stand-ins of one device process cannot wait for each other within a step of indivisible forces.
    std::vector<int> taken(static_cast<std::size_t>(size), 0);
    for (const int device : server_.device_of_host)
        if (++taken[static_cast<std::size_t>(device)] > 1 && settings.potential == Potential::eam &&
            settings.offpath != OffPath::none)
            throw mpi_support::UsageError("--offpath with -p eam needs a device rank for every host rank");
    lanes_ = settings.precision == Precision::single_precision ? agree_on_lanes<float>(settings.lanes)
                                                               : agree_on_lanes<double>(settings.lanes);
    if (ranks_.is_device != 0) {
        role_ = server_.hosts.empty() ? Role::waits : Role::serves;
        simulation_ = MPI_COMM_NULL;
        return;
    }
    simulation_ = ranks_.kind_comm;
    device_ = mine.peer;
    // All hosts get the same answer, so that all devices are told the same.
    sole_host_ = sharers == 1;
    int all_sole = sole_host_ ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &all_sole, 1, MPI_INT, MPI_LAND, ranks_.kind_comm);
    sole_host_ = all_sole != 0;
}

template <typename Real>
int Places::agree_on_lanes(int wanted) const {
    constexpr int order[] = {sizeof(Real) == 8 ? 4 : 8, sizeof(Real) == 8 ? 8 : 16,
                             sizeof(Real) == 8 ? 2 : 4};
    int have[3];
    for (int i = 0; i < 3; ++i) {
        have[i] = wanted == 0 || wanted == order[i] ? 1 : 0;
        try {
            (void)kernels<Real>(order[i]);
        } catch (const std::invalid_argument&) {
            have[i] = 0;
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, have, 3, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    for (int i = 0; i < 3; ++i)
        if (have[i] != 0) return order[i];
    throw mpi_support::UsageError("hosts and devices have no kernels with a common number of lanes");
}

Places::~Places() {
    if (split_) offpath_device_ranks_free(&ranks_);
}

void Places::wait_for_all() {
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int done = 0; done == 0;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done == 0) usleep(2000);
    }
}

}  // namespace minimd
