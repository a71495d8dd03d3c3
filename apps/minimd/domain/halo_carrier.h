// What a halo exchanges, and who may take it from rank to rank in place of MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace minimd {

// From owners to ghosts, three numbers an atom or one; or from ghosts home.
enum class Move { positions, values, forces, sums };

constexpr std::size_t numbers_per_atom(Move move) {
    return move == Move::positions || move == Move::forces ? 3 : 1;
}
constexpr bool homeward(Move move) {
    return move == Move::forces || move == Move::sums;
}

// One of a rank's: all carriers of a job are of one kind, and see the same moves in the same order.
template <typename Real>
class HaloCarrier {
  public:
    virtual ~HaloCarrier() = default;

    // So many atoms go to a peer and come from it in a move from owners to ghosts; in one homeward the other
    // way round.
    struct Traffic {
        int rank = 0;
        std::int32_t out = 0, in = 0;
    };
    // After each build of the halo. `both_ways`: with moves homeward. The first is collective; false, on all
    // ranks alike: it cannot, and is not to be used. If a later one cannot, the carrier is lost: finish()
    // says so.
    virtual bool plan(const std::vector<Traffic>& peers, bool both_ways) = 0;
    virtual bool carries(Move move) const = 0;

    // Room for what the next such move takes away, peer by peer. It stays as it is until the move after that
    // one is finished, since somebody may have to be sent it again.
    virtual Real* out(Move move) = 0;
    // Sends it.
    virtual void start(Move move) = 0;
    // Waits for what has come, peer by peer, which stays until the next start. Null: the carrier is lost, for
    // all ranks, of which some have finished this move.
    virtual const Real* finish(Move move) = 0;
    virtual bool can_be_lost() const = 0;
};

}  // namespace minimd
