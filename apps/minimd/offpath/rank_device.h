// The host's side of a device that is a rank of the same MPI job. rank_server.h is the other side.
#pragma once

#include <mpi.h>

#include <vector>

#include "minimd/base/stopwatch.h"
#include "minimd/offpath/device.h"
#include "minimd/offpath/pieces.h"
#include "minimd/offpath/protocol.h"

namespace minimd {

template <typename Real>
class RankDevice final : public Device<Real> {
  public:
    // `device` is the device's rank in `comm`. `may_follow`: the device serves no other host, so its forces
    // can follow an exchange of atoms. `near`: the device shares memory with this process.
    RankDevice(MPI_Comm comm, int device, bool may_follow, bool near)
        : comm_(comm), device_(device), may_follow_(may_follow), piece_bytes_(near ? 0 : far_piece_bytes) {}
    RankDevice(const RankDevice&) = delete;
    RankDevice& operator=(const RankDevice&) = delete;
    // Tells the device to stop serving this host.
    ~RankDevice() override;

    GhostMover ghost_mover() const override { return GhostMover::devices; }
    bool takes_undivided() const override { return true; }
    void set_lists(const Particles<Real>& particles, Neighborhood<Real>& neighborhood) override;
    void start(const Particles<Real>& particles, const Share& share) override;
    bool follow(Migration<Real>& migration) override;
    std::optional<typename Device<Real>::Outcome> finish() override;

  private:
    void say(Command command);
    void say(Command command, const std::vector<std::int32_t>& numbers);
    template <typename T>
    void send_pieces(const T* data, std::size_t count, MPI_Datatype type, int tag,
                     std::vector<MPI_Request>& requests);
    void settle();

    MPI_Comm comm_;
    int device_;
    bool may_follow_;
    std::int32_t piece_bytes_;
    std::int32_t answer_slots_ = 0;
    std::vector<std::int32_t> list_numbers_, first_rows_, record_;
    std::vector<MPI_Request> lists_sent_;
    Stopwatch started_;
    std::vector<MPI_Request> pending_;  // outstanding sends of this step
    std::vector<Real> forces_;
};

}  // namespace minimd
