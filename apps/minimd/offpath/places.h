// The role of each rank in the job: it simulates, serves as a device, or waits.
#pragma once

#include <mpi.h>
#include <offpath/device_ranks.h>

#include "minimd/base/settings.h"
#include "minimd/offpath/rank_server.h"

namespace minimd {

class Places {
  public:
    // Collective over MPI_COMM_WORLD. Throws mpi_support::UsageError on all ranks if the settings need
    // devices and there are none, or if these cannot do what the settings ask for.
    explicit Places(const Settings& settings);
    ~Places();
    Places(const Places&) = delete;
    Places& operator=(const Places&) = delete;

    enum class Role { simulates, serves, waits };
    Role role() const { return role_; }

    // The communicator of the ranks that simulate. MPI_COMM_NULL on other ranks.
    MPI_Comm simulation() const { return simulation_; }
    // For a rank that simulates with a device: the device, whether every host of the job has a device of its
    // own, and whether this device shares memory with it.
    int device() const { return device_; }  // rank in MPI_COMM_WORLD
    bool sole_host() const { return sole_host_; }
    bool near_device() const { return near_device_; }
    // For a rank that serves: where its hosts and the other devices are.
    const ServerPlaces& server() const { return server_; }
    // The number of lanes that all ranks have. 0 if they need not agree.
    int lanes() const { return lanes_; }
    // The rank in MPI_COMM_WORLD of the first rank that simulates.
    int root() const { return root_; }

    // Blocks until all ranks have called it, without using a core meanwhile.
    static void wait_for_all();

  private:
    void pair_up(const Settings& settings);
    template <typename Real>
    int agree_on_lanes(int wanted) const;

    offpath_device_ranks_t ranks_{};
    bool split_ = false;
    Role role_ = Role::simulates;
    MPI_Comm simulation_ = MPI_COMM_WORLD;
    int device_ = -1;
    bool sole_host_ = false, near_device_ = false;
    int lanes_ = 0;
    int root_ = 0;
    ServerPlaces server_;
};

}  // namespace minimd
