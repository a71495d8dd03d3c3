// Sends atoms that left this rank's subdomain to its neighbours, dimension by dimension.
//
// The object remembers which atoms moved until the next start(). Another array of three numbers for each
// atom, for instance forces that a device computed meanwhile, can therefore follow the atoms: see follow().
// One thread at a time. finish() and follow() are collective.
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

// Atoms moved to where the simulation cannot follow them. The message names the step and an atom.
struct SimulationError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The same error, thrown on every rank with the same message.
struct CommonSimulationError : SimulationError {
    using SimulationError::SimulationError;
};

template <typename Real>
class Migration {
  public:
    static constexpr std::int32_t filler_origin = std::numeric_limits<std::int32_t>::min();

    explicit Migration(const Decomposition& decomposition);

    // Wraps positions into the box and exchanges atoms. start() sends the first of those that leave. After
    // finish() this rank has atoms 0 ... size() - 1, whose data are in the old slots or were received. Both
    // throw SimulationError for an atom whose position is not a number, or that moved further than one
    // subdomain since the last exchange.
    void start(const Particles<Real>& particles, std::int64_t step);
    // If `patient`, waits for other ranks as described in patience.h, without occupying the core.
    void finish(bool patient = false);

    // Seconds on a core in calls of MPI, over all exchanges.
    double calls() const { return calls_.seconds(); }

    std::size_t size() const { return x_.size(); }
    const std::vector<Real>& x() const { return x_; }
    const std::vector<Real>& y() const { return y_; }
    const std::vector<Real>& z() const { return z_; }

    // Puts atom order[s] into slot s, or a filler if order[s] is -1. `particles` must be unchanged since
    // start().
    void settle(Particles<Real>& particles, const std::vector<std::int32_t>& order);

    // Copies an array of three numbers for each atom, in blocks of the old slots, to the new slots of
    // settle(). Fillers get 0. If `more` is not null, it has the form of `old_blocks`, and its numbers are
    // added.
    void follow(const Real* old_blocks, Real* new_blocks, const Real* more = nullptr) const;

    // describe() appends to `record` the numbers that follow() needs. adopt() takes them over, so that
    // follow() repeats an exchange of another process with the same grid.
    void describe(std::vector<std::int32_t>& record) const;
    void adopt(Layout layout, std::span<const std::int32_t> record);

    // The positions before settle(), ghosts included. They stay until the next settle().
    const AlignedVector<Real>& old_x() const { return new_x_; }

    // For each new slot, where its atom was: an old slot, or -1 - i for the received atom i. filler_origin
    // for fillers.
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

    // Exchange the atoms that leave in one dimension. finish() calls them for each dimension that has other
    // ranks.
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
    std::vector<std::int32_t> origin_;  // of atom i, in the form of origin_of_slot()
    std::vector<std::int32_t> origin_of_slot_;
    std::vector<Traveller> leaving_;
    std::vector<std::int32_t> leaving_origin_;
    std::vector<Traveller> received_;
    std::size_t received_count_ = 0;
    std::int64_t step_ = 0;
    std::vector<int> dimensions_;                // that have other ranks
    std::array<std::vector<Traveller>, 2> out_;  // atoms on their way down and up
    std::array<MPI_Request, 2> sends_;
    std::array<std::array<Pass, 2>, 3> passes_;  // by dimension, then down and up
    AlignedVector<Real> new_x_, new_v_;
    std::vector<std::int64_t> new_id_;
    std::vector<std::int32_t> new_type_;
};

}  // namespace minimd
