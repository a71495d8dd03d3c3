// Ghosts: images of atoms near this rank's subdomain. The ranks that own the atoms send them directly, in one
// round.
//
// A build decides at each re-neighbouring which rank needs which atoms. update() then sends the positions of
// every step, and reverse() sends the forces on ghosts back to the owners of the atoms. Each of the two has a
// start and a finish. Between them the caller may compute on everything except ghosts. The same lists carry
// one number for each atom, for instance EAM's densities. All calls are collective unless stated otherwise,
// and one thread at a time makes them.
//
// A carrier (halo_carrier.h) may move the numbers instead of MPI. When the carrier is lost, the ranks agree
// on what has arrived at which rank, MPI sends the rest again, and the halo continues with MPI.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

#include "minimd/base/call_time.h"
#include "minimd/cells/pair_list.h"
#include "minimd/cells/particles.h"
#include "minimd/domain/decomposition.h"
#include "minimd/domain/halo_carrier.h"
#include "minimd/domain/halo_plan.h"

namespace minimd {

template <typename Real>
class Halo {
  public:
    using Shell = typename PairSearch<Real>::Shell;

    // Has the images within `range` of the subdomain, only in the upward directions for Shell::eighth.
    // `column_side` is that of Columns. If `blocking`, what MPI moves is waited for where it is started.
    Halo(const Decomposition& decomposition, double range, Shell shell, double column_side,
         bool blocking = false);

    // Sends this rank's atoms to the ranks that need them as ghosts, then gives the ghosts that arrived slots
    // behind those of this rank's atoms. zones[0] is not changed. Between the two calls, the ghosts of
    // another halo may move.
    void start_build(const Particles<Real>& particles);
    void finish_build(Particles<Real>& particles, std::vector<Zone<Real>>& zones);

    void start_update(const Particles<Real>& particles);
    void finish_update(Particles<Real>& particles);
    void update(Particles<Real>& particles) {
        start_update(particles);
        finish_update(particles);
    }

    // Adds the forces in `f` on ghosts to the forces on their atoms. From start to finish, the forces on
    // ghosts must not change.
    void start_reverse(const Real* f);
    void finish_reverse(Real* f);

    // Do the same for one number in each slot.
    void start_update_scalar(const Real* per_slot);
    void finish_update_scalar(Real* per_slot);
    void start_reverse_scalar(const Real* per_slot);
    void finish_reverse_scalar(Real* per_slot);

    // Lets MPI progress between a start and its finish. Local.
    void poll();

    // Whether other ranks have ghosts of this rank's atoms, or this rank has ghosts of theirs.
    bool travels() const { return !plan_.peers.empty(); }

    // From the next build on, `carrier` moves what it can. Null: MPI moves everything. The carrier must
    // outlive this object.
    void use(HaloCarrier<Real>* carrier) { carrier_ = carrier; }
    bool has_carrier() const { return carrier_ != nullptr; }
    // Ranks call these before they do anything together other than moves, because the carrier may be lost for
    // some of the ranks only. Between start and finish, nothing may wait for other ranks. While a move is
    // outstanding, nothing is settled: the ranks may then exchange atoms until the move is finished, and
    // settle afterwards.
    void start_settle();
    void finish_settle();
    void settle() {
        start_settle();
        finish_settle();
    }

    // describe() appends the result of the build to `plan`, as numbers. adopt() takes over the plan of
    // another process with the same grid. This halo then updates and reverses the same ghosts without a build
    // of its own.
    void describe(std::vector<std::int32_t>& plan) const { plan_.describe(plan); }
    void adopt(Layout layout, std::span<const std::int32_t> plan);

    // Seconds on a core in calls of MPI and of carriers.
    double calls() const { return calls_.seconds(); }
    std::size_t ghosts() const { return ghosts_; }
    // Bytes that an update sends to other ranks.
    std::size_t bytes_per_update() const;
    // Bytes that carriers have taken from this rank.
    std::size_t bytes_carried() const { return numbers_carried_ * sizeof(Real); }

  private:
    struct Buffers {
        std::vector<Real> out, in;
    };
    // A move that a carrier has started or finished.
    struct Carried {
        Move move{};
        const Real* out = nullptr;
    };

    std::size_t numbers_out(const GhostPeer& peer, Move move) const {
        return numbers_per_atom(move) * (homeward(move) ? peer.slots_in.size() : plan_.atoms_out(peer));
    }
    std::size_t numbers_in(const GhostPeer& peer, Move move) const {
        return numbers_per_atom(move) * (homeward(move) ? plan_.atoms_out(peer) : peer.slots_in.size());
    }

    // `pack(peer, to)` writes the numbers for a peer, and `unpack(peer, from)` reads those that came from it.
    template <typename Pack>
    void start(Move move, const Pack& pack);
    template <typename Pack>
    void send(Move move, int tag, const Pack& pack);  // by MPI
    void post_receives(Move move, int tag);
    void receive_ghosts();
    void pack_positions(const Particles<Real>& particles, const GhostPeer& peer, Real* out) const;
    template <typename Unpack>
    void finish(Move move, const Unpack& unpack);
    static int tag_of(Move move);  // of moves other than a build's
    void post_receive(std::size_t p, Move move, int tag, MPI_Request& request);
    void post_send(std::size_t p, Move move, int tag, const Real* from, MPI_Request& request);
    void wait(std::vector<MPI_Request>& requests);
    void await(std::vector<MPI_Request>& requests);  // without occupying the core if there is a carrier

    void plan_carrier();
    // Tell all ranks whether this rank has lost the carrier and how many moves it has finished. If any rank
    // has lost the carrier, no rank uses it any more, and finish_agreement() returns the number of finished
    // moves of each rank. Otherwise it returns nothing. Collective.
    void start_agreement(bool lost);
    std::vector<std::int64_t> finish_agreement();
    // Sends the last finished move again to the ranks that lack it. Throws SimulationError if a rank lacks
    // more than this rank has kept.
    void send_again(const std::vector<std::int64_t>& finished, std::vector<MPI_Request>& requests);
    void hand_over();

    const Decomposition& decomposition_;
    double column_side_;
    bool blocking_;
    Layout layout_;
    HaloPlan<Real> plan_;
    std::vector<Buffers> buffers_;  // by peer
    std::vector<MPI_Request> requests_, count_requests_;
    CallTime calls_;
    std::size_t ghosts_ = 0;

    HaloCarrier<Real>* carrier_ = nullptr;
    bool planned_ = false;        // the carrier knows the ghosts of the last build
    Carried current_;             // `out` is null while the carrier has no move outstanding
    Carried last_, before_last_;  // finished moves
    std::int64_t finished_ = 0;   // number of moves that carriers have finished
    std::size_t numbers_carried_ = 0;

    // What each rank tells the others when they agree on the state of the carrier.
    struct Word {
        std::int64_t finished, lost;
    };
    Word own_word_{};
    std::vector<Word> words_;  // by rank
    MPI_Request agreement_ = MPI_REQUEST_NULL;
};

}  // namespace minimd
