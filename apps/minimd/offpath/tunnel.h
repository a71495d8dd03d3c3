// Ghosts by way of the devices: host, its device, the neighbour's device, its host. What the manual offload
// of communication does, two hops more than the straight way; here to be measured.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "minimd/domain/decomposition.h"
#include "minimd/domain/halo.h"
#include "minimd/offpath/protocol.h"

namespace minimd {

// The host's end. Ends the device's service when it goes.
template <typename Real>
class Tunnel final : public HaloCarrier<Real> {
  public:
    Tunnel(MPI_Comm comm, int device) : comm_(comm), device_(device) {}
    Tunnel(const Tunnel&) = delete;
    Tunnel& operator=(const Tunnel&) = delete;
    ~Tunnel() override;

    void plan(const std::vector<typename HaloCarrier<Real>::Traffic>& peers) override;
    void start(const std::vector<Real>& out, bool reverse) override;
    void finish(std::vector<Real>& in) override;

  private:
    void say(const Command& command);

    MPI_Comm comm_;
    int device_;
    MPI_Request sent_ = MPI_REQUEST_NULL;
};

// The device's end, for one host.
template <typename Real>
class TunnelExit {
  public:
    explicit TunnelExit(const Decomposition& decomposition) : decomposition_(decomposition) {}

    void plan(const std::vector<std::int32_t>& numbers) { peers_ = numbers; }
    void start(MPI_Comm world, int host, bool reverse);
    void finish(MPI_Comm world, int host);

  private:
    const Decomposition& decomposition_;
    std::vector<std::int32_t> peers_;  // rank, out, in of each
    std::vector<Real> out_, in_;
    std::vector<MPI_Request> requests_;
};

}  // namespace minimd
