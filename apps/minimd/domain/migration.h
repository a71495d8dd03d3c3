// Atoms that left their rank's subdomain go to its neighbours', dimension by dimension.
//
// What happened is remembered until the next start(), so that another array of three numbers an atom (forces
// that were computed elsewhere meanwhile) can follow the atoms: follow(). One thread at a time; finish() and
// follow() are collective.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "minimd/base/call_time.h"
#include "minimd/cells/particles.h"
#include "minimd/domain/decomposition.h"

namespace minimd {

// Atoms that went where the simulation cannot follow. Names the step and an atom.
struct SimulationError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The same on every rank, with the same words.
struct CommonSimulationError : SimulationError {
    using SimulationError::SimulationError;
};

template <typename Real>
class Migration {
  public:
    static constexpr std::int32_t filler_origin = std::numeric_limits<std::int32_t>::min();

    explicit Migration(const Decomposition& decomposition);

    // Wraps positions into the box and exchanges atoms; the first leave with start(). After finish() this
    // rank has atoms 0 ... size() - 1, whose data are in the old slots or were received. Both throw
    // SimulationError for an atom that is not a number, or that has passed a whole subdomain since the last
    // time.
    void start(const Particles<Real>& particles, std::int64_t step);
    // `patient`: waits for others as patience.h does, not as MPI does.
    void finish(bool patient = false);

    // Time in calls of MPI, of all of them.
    double calls() const { return calls_.seconds(); }

    std::size_t size() const { return x_.size(); }
    const std::vector<Real>& x() const { return x_; }
    const std::vector<Real>& y() const { return y_; }
    const std::vector<Real>& z() const { return z_; }

    // Puts atom order[s] into slot s, a filler where that is -1. `particles` is still that of start().
    void settle(Particles<Real>& particles, const std::vector<std::int32_t>& order);

    // Takes three numbers an atom, as blocks in the old slots, to the new slots of settle(). Fillers get 0.
    // Those of `more`, which is like the first, are added unless it is null.
    void follow(const Real* old_blocks, Real* new_blocks, const Real* more = nullptr) const;

    // What follow() needs, as numbers appended to `record`; and to follow what happened in another process of
    // the same grid.
    void describe(std::vector<std::int32_t>& record) const;
    void adopt(Layout layout, std::span<const std::int32_t> record);

    // The positions before settle(), ghosts included, until the next one.
    const AlignedVector<Real>& old_x() const { return new_x_; }

    // Where the atom of a new slot was: an old slot, or minus one minus the number of a received atom.
    // filler_origin for fillers.
    const std::vector<std::int32_t>& origin_of_slot() const { return origin_of_slot_; }

  private:
    struct Traveller {
        Real x[3], v[3];
        std::int64_t id;
        std::int32_t type;
        std::int32_t unused;
    };
    struct Pass {
        std::vector<std::int32_t> sent;  // origins
        std::int32_t received = 0;
    };

    // Of all dimensions in which there are other ranks, one after the other.
    void send(int dimension);
    void receive(int dimension, bool patient);
    void stay(Real x, Real y, Real z, std::int32_t origin) {
        x_.push_back(x);
        y_.push_back(y);
        z_.push_back(z);
        origin_.push_back(origin);
    }

    const Decomposition& decomposition_;
    CallTime calls_;
    Layout layout_;
    std::vector<Real> x_, y_, z_;
    std::vector<std::int32_t> origin_;  // of atom i, as origin_of_slot()
    std::vector<std::int32_t> origin_of_slot_;
    std::vector<Traveller> leaving_;
    std::vector<std::int32_t> leaving_origin_;
    std::vector<Traveller> received_;
    std::size_t received_count_ = 0;
    std::int64_t step_ = 0;
    std::vector<int> dimensions_;                // with other ranks
    std::array<std::vector<Traveller>, 2> out_;  // on their way down and up
    std::array<MPI_Request, 2> sends_;
    std::array<std::array<Pass, 2>, 3> passes_;  // by dimension, then down and up
    AlignedVector<Real> new_x_, new_v_;
    std::vector<std::int64_t> new_id_;
    std::vector<std::int32_t> new_type_;
};

}  // namespace minimd
