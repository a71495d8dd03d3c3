// Sends ghosts through the devices: from a host to its device, to the neighbour's device, to its host. Manual
// offload of communication works like this. It takes two hops more than the direct way. The tunnel exists to
// measure that.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "minimd/domain/decomposition.h"
#include "minimd/domain/halo.h"
#include "minimd/offpath/protocol.h"

namespace minimd {

// The host's end. Its destructor ends the device's service.
template <typename Real>
class Tunnel final : public HaloCarrier<Real> {
  public:
    Tunnel(MPI_Comm comm, int device) : comm_(comm), device_(device) {}
    Tunnel(const Tunnel&) = delete;
    Tunnel& operator=(const Tunnel&) = delete;
    ~Tunnel() override;

    bool plan(const std::vector<typename HaloCarrier<Real>::Traffic>& peers, bool both_ways) override;
    bool carries(Move move) const override { return numbers_per_atom(move) == 3; }
    Real* out(Move) override { return out_.data(); }
    void start(Move move) override;
    const Real* finish(Move move) override;
    bool can_be_lost() const override { return false; }

  private:
    void say(const Command& command);

    MPI_Comm comm_;
    int device_;
    std::size_t atoms_out_ = 0, atoms_in_ = 0;  // in a move from owners to ghosts
    std::vector<Real> out_, in_;
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
    std::vector<std::int32_t> peers_;  // for each peer: rank, out, in
    std::vector<Real> out_, in_;
    std::vector<MPI_Request> requests_;
};

}  // namespace minimd
