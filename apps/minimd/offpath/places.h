// Who does what in this job: which ranks simulate, which serve as devices, which wait.
#pragma once

#include <mpi.h>
#include <offpath/device_ranks.h>

#include "minimd/base/settings.h"
#include "minimd/offpath/rank_server.h"

namespace minimd {

class Places {
  public:
    // Collective over MPI_COMM_WORLD. Throws mpi_support::UsageError, on all ranks alike, where devices are
    // asked for and there are none, or cannot do what is asked.
    explicit Places(const Settings& settings);
    ~Places();
    Places(const Places&) = delete;
    Places& operator=(const Places&) = delete;

    enum class Role { simulates, serves, waits };
    Role role() const { return role_; }

    // Of the ranks that simulate; null on others.
    MPI_Comm simulation() const { return simulation_; }
    // Of a rank that simulates with a device of its own.
    int device() const { return device_; }  // rank in MPI_COMM_WORLD
    bool sole_host() const { return sole_host_; }
    bool near_device() const { return near_device_; }  // they share memory
    // Of a rank that serves.
    const ServerPlaces& server() const { return server_; }
    // Number of lanes that all ranks have; 0: no need to agree.
    int lanes() const { return lanes_; }
    // Rank in MPI_COMM_WORLD of the first that simulates.
    int root() const { return root_; }

    // Blocks until all ranks are here, without using a core meanwhile.
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
