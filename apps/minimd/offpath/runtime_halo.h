// Moves ghosts by offpath's devices. A move is a group schedule of sends and receives, which is recorded
// after each build of the halo and started in every step. The numbers are in memory of offpath_mem_alloc. A
// device that shares memory with this host therefore reads them where the host packed them, and writes them
// where the host unpacks them, while the host computes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "minimd/domain/halo_carrier.h"
#include "minimd/offpath/device_memory.h"
#include "minimd/offpath/runtime_context.h"

namespace minimd {

template <typename Real>
class RuntimeHalo final : public HaloCarrier<Real> {
  public:
    // `scalars`: there are moves of one number for each atom, too. Collective. `comm` must outlive this
    // object.
    RuntimeHalo(MPI_Comm comm, bool scalars);

    // OFFPATH_OK on all ranks, or the reason why some rank has no device. No other function may be called
    // then.
    offpath_status_t status() const { return context_.status(); }

    bool plan(const std::vector<typename HaloCarrier<Real>::Traffic>& peers, bool both_ways) override;
    bool carries(Move move) const override { return scalars_ || numbers_per_atom(move) == 3; }
    Real* out(Move move) override;
    void start(Move move) override;
    const Real* finish(Move move) override;
    bool can_be_lost() const override { return true; }

  private:
    // One recorded move and its memory. If a move always follows one of the same kind, there are two lanes,
    // used in turn.
    struct Lane {
        Lane(Move what, DeviceHeap& heap) : move(what), out(heap), in(heap) {}
        Move move;
        DeviceMemory out, in;
        std::size_t bytes_out = 0;
        offpath_group_h group = nullptr;
    };
    using Peers = std::vector<typename HaloCarrier<Real>::Traffic>;

    offpath_status_t record(Lane& lane, const Peers& peers);
    Lane& lane_of(Move move);

    MPI_Comm comm_;
    bool scalars_;
    RuntimeContext context_;
    offpath_team_h world_ = nullptr;
    std::vector<std::unique_ptr<Lane>> lanes_;
    Lane* latest_ = nullptr;
    bool started_ = false;
    bool lost_ = false;        // whether the device was lost before the moves of the last plan were recorded
    std::vector<Real> spare_;  // room for the numbers to send, if the device is lost
};

}  // namespace minimd
