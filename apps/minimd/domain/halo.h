// Ghosts: images of atoms near this rank's subdomain, sent by the ranks that own them, straight, in one
// round.
//
// build() decides at each re-neighbouring who needs what; update() then brings the positions of every step,
// reverse() takes forces on ghosts home. Each has a start and a finish, between which the caller may compute
// on anything that is not a ghost's. The same lists carry one number an atom (EAM's densities). All are
// collective; one thread at a time.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "minimd/cells/pair_list.h"
#include "minimd/cells/particles.h"
#include "minimd/domain/decomposition.h"

namespace minimd {

// Takes the ghosts' numbers of an update, or of a reverse one, another way than straight between the ranks.
template <typename Real>
class HaloCarrier {
  public:
    virtual ~HaloCarrier() = default;
    // After each build(): so many atoms go to and come from each peer.
    struct Traffic {
        int rank = 0;
        std::int32_t out = 0, in = 0;
    };
    virtual void plan(const std::vector<Traffic>& peers) = 0;
    // `out` has three numbers an atom, peer by peer, and stays as it is until finish(), which fills `in`
    // likewise. A reverse transfer sends what an update receives.
    virtual void start(const std::vector<Real>& out, bool reverse) = 0;
    virtual void finish(std::vector<Real>& in) = 0;
};

template <typename Real>
class Halo {
  public:
    using Shell = typename PairSearch<Real>::Shell;

    // Images within `range` of the subdomain: in the upward directions only for Shell::eighth. `column_side`
    // as in Columns.
    Halo(const Decomposition& decomposition, double range, Shell shell, double column_side);

    // Finds this rank's ghosts and gives them slots behind those of its own atoms. zones[0] is not touched.
    void build(Particles<Real>& particles, std::vector<Zone<Real>>& zones);

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

    // From the next build() on, positions and forces go with `carrier`, unless it is null.
    void use(HaloCarrier<Real>* carrier) { carrier_ = carrier; }

    // What build() found out, as numbers appended to `plan`, and a halo of the same grid that takes it over
    // from another process: it updates and reverses the same ghosts without a build of its own.
    void describe(std::vector<std::int32_t>& plan) const;
    void adopt(Layout layout, std::span<const std::int32_t> plan);

    std::size_t ghosts() const { return ghosts_; }
    // Bytes that an update takes to other ranks.
    std::size_t bytes_per_update() const;
    // Bytes that the carrier has taken from here.
    std::size_t bytes_carried() const { return numbers_carried_ * sizeof(Real); }

  private:
    // One image: the receiver is `offset` places below (in the grid) of the owner.
    struct Image {
        std::array<int, 3> offset{};
        std::array<Real, 3> shift{};   // what an atom's position gets on its way
        std::array<double, 3> edge{};  // the receiver's, in this rank's coordinates
        std::size_t zone = 0;
        std::vector<std::int32_t> slots;  // of the atoms sent
    };
    struct Peer {
        int rank = 0;
        std::vector<std::size_t> images_out, images_in;
        std::vector<int> counts_out, counts_in;  // by image
        std::vector<Real> out, in;
        std::vector<std::int32_t> slots_in;  // where ghosts from here are, in the order of arrival
    };
    struct Copy {
        std::int32_t from, to;  // slots of this rank
    };

    void select(const Particles<Real>& particles);
    void exchange_counts();
    void post_send(Peer& peer, int tag, MPI_Request& request);
    void post_receive(Peer& peer, std::size_t numbers, int tag, MPI_Request& request);
    void carry(bool reverse);
    void receive_carried(bool reverse);
    std::size_t sent_atoms(const Peer& peer) const;

    const Decomposition& decomposition_;
    double range_;
    Shell shell_;
    double column_side_;
    Layout layout_;
    std::vector<Image> images_;
    std::vector<std::size_t> own_images_;  // that this rank sends itself
    std::vector<Peer> peers_;
    std::vector<std::vector<Copy>> copies_;  // by own image
    std::vector<MPI_Request> requests_;
    std::size_t ghosts_ = 0;
    HaloCarrier<Real>* carrier_ = nullptr;
    bool carried_ = false;
    std::size_t numbers_carried_ = 0;
    std::vector<Real> carried_out_, carried_in_;
    std::vector<std::int32_t> order_;
};

}  // namespace minimd
