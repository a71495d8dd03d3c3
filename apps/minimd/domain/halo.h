// Ghosts: images of atoms near this rank's subdomain, sent by the ranks that own them, straight, in one
// round.
//
// A build decides at each re-neighbouring who needs what; update() then brings the positions of every step,
// reverse() takes forces on ghosts home. Each has a start and a finish, between which the caller may compute
// on anything that is not a ghost's. The same lists carry one number an atom (EAM's densities). All are
// collective; one thread at a time.
//
// A carrier (halo_carrier.h) may take the numbers instead of MPI. When it is lost, ranks agree on what has
// arrived where, the rest is sent again by MPI, and MPI goes on.
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

    // Images within `range` of the subdomain: in the upward directions only for Shell::eighth. `column_side`
    // as in Columns. `blocking`: what MPI moves is waited for where it is started.
    Halo(const Decomposition& decomposition, double range, Shell shell, double column_side,
         bool blocking = false);

    // Sends everybody's ghosts; then gives those that came slots behind those of this rank's atoms. zones[0]
    // is not touched. In between the ghosts of another halo may move.
    void start_build(const Particles<Real>& particles);
    void finish_build(Particles<Real>& particles, std::vector<Zone<Real>>& zones);

    void start_update(const Particles<Real>& particles);
    void finish_update(Particles<Real>& particles);
    void update(Particles<Real>& particles) {
        start_update(particles);
        finish_update(particles);
    }

    // Adds `f` of ghosts to that of their atoms. From start to finish, ghosts' forces must stay as they are.
    void start_reverse(const Real* f);
    void finish_reverse(Real* f);

    // The same for one number a slot.
    void start_update_scalar(const Real* per_slot);
    void finish_update_scalar(Real* per_slot);
    void start_reverse_scalar(const Real* per_slot);
    void finish_reverse_scalar(Real* per_slot);

    // Between a start and its finish: lets MPI move what it has to move. Local.
    void poll();

    // Are there other ranks with ghosts of this one's atoms?
    bool travels() const { return !plan_.peers.empty(); }

    // From the next build on, `carrier` moves what it can, unless it is null. It outlives this.
    void use(HaloCarrier<Real>* carrier) { carrier_ = carrier; }
    bool has_carrier() const { return carrier_ != nullptr; }
    // Before anything else that ranks do together than moves: a carrier may be lost for others only. From
    // start to finish nothing that waits for other ranks. While a move is under way it is put off: ranks may
    // exchange atoms till that is finished, and then settle.
    void start_settle();
    void finish_settle();
    void settle() {
        start_settle();
        finish_settle();
    }

    // What the build found out, as numbers appended to `plan`, and a halo of the same grid that takes it over
    // from another process: it updates and reverses the same ghosts without a build of its own.
    void describe(std::vector<std::int32_t>& plan) const { plan_.describe(plan); }
    void adopt(Layout layout, std::span<const std::int32_t> plan);

    // Time in calls of MPI and of carriers.
    double calls() const { return calls_.seconds(); }
    std::size_t ghosts() const { return ghosts_; }
    // Bytes that an update takes to other ranks.
    std::size_t bytes_per_update() const;
    // Bytes that carriers have taken from here.
    std::size_t bytes_carried() const { return numbers_carried_ * sizeof(Real); }

  private:
    struct Buffers {
        std::vector<Real> out, in;
    };
    // What a carrier moves, or moved.
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

    // `pack(peer, to)` writes what goes to a peer, `unpack(peer, from)` reads what came.
    template <typename Pack>
    void start(Move move, const Pack& pack);
    template <typename Pack>
    void send(Move move, int tag, const Pack& pack);  // by MPI
    void post_receives(Move move, int tag);
    void receive_ghosts();
    void pack_positions(const Particles<Real>& particles, const GhostPeer& peer, Real* out) const;
    template <typename Unpack>
    void finish(Move move, const Unpack& unpack);
    static int tag_of(Move move);  // but for those of a build
    void post_receive(std::size_t p, Move move, int tag, MPI_Request& request);
    void post_send(std::size_t p, Move move, int tag, const Real* from, MPI_Request& request);
    void wait(std::vector<MPI_Request>& requests);
    void await(std::vector<MPI_Request>& requests);  // patiently if there is a carrier

    void plan_carrier();
    // Tells all ranks whether the carrier is lost for this one, and what it finished. If it is lost for
    // anybody it is not used any more, and what everybody finished is returned; else nothing. Collective.
    void start_agreement(bool lost);
    std::vector<std::int64_t> finish_agreement();
    // What those behind this rank lack of what it has finished. Throws SimulationError if it is not there
    // any more.
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
    bool planned_ = false;        // the carrier knows the ghosts
    Carried current_;             // `out` is null while nothing is under way there
    Carried last_, before_last_;  // that were finished
    std::int64_t finished_ = 0;   // moves of carriers
    std::size_t numbers_carried_ = 0;

    // While ranks make sure of each other: what they tell.
    struct Word {
        std::int64_t finished, lost;
    };
    Word own_word_{};
    std::vector<Word> words_;  // by rank
    MPI_Request agreement_ = MPI_REQUEST_NULL;
};

}  // namespace minimd
