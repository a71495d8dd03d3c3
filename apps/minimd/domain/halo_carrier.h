// The moves of a halo, and the interface of what may carry them from rank to rank instead of MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace minimd {

// Moves go from owners to ghosts (positions, values) or back home (forces, sums). Positions and forces are
// three numbers for each atom, values and sums are one.
enum class Move { positions, values, forces, sums };

constexpr std::size_t numbers_per_atom(Move move) {
    return move == Move::positions || move == Move::forces ? 3 : 1;
}
constexpr bool homeward(Move move) {
    return move == Move::forces || move == Move::sums;
}

// One rank's carrier. All carriers of a job are of the same kind and see the same moves in the same order.
template <typename Real>
class HaloCarrier {
  public:
    virtual ~HaloCarrier() = default;

    // How many atoms go to a peer and come from it in a move from owners to ghosts. In a homeward move the
    // two change places.
    struct Traffic {
        int rank = 0;
        std::int32_t out = 0, in = 0;
    };
    // Prepares for the ghosts of a new build. `both_ways`: there will be homeward moves, too. The first call
    // is collective. If it returns false, it does so on all ranks, and the carrier must not be used. If a
    // later call fails, the carrier is lost, and finish() reports it.
    virtual bool plan(const std::vector<Traffic>& peers, bool both_ways) = 0;
    virtual bool carries(Move move) const = 0;

    // Returns the place for the numbers that the next such move sends, peer by peer. They stay unchanged
    // until the move after that one is finished, because they may have to be sent again.
    virtual Real* out(Move move) = 0;
    // Starts to send the numbers at out().
    virtual void start(Move move) = 0;
    // Waits for the numbers that arrive and returns them, peer by peer. They stay until the next start.
    // Returns null if the carrier is lost for all ranks. Some of the ranks may have finished this move then.
    virtual const Real* finish(Move move) = 0;
    virtual bool can_be_lost() const = 0;
};

}  // namespace minimd
