// Forces of the embedded-atom method: densities, their embedding, forces; with what travels between ranks
// hidden behind pairs that do not need it.
//
// An eighth shell leaves parts of an atom's density with ghosts of it, which go home first; in all shells the
// derivatives of the embedding energy then go out to ghosts. One caller at a time.
#pragma once

#include <vector>

#include "minimd/dynamics/forces.h"
#include "minimd/kernels/eam_loops.h"
#include "minimd/setup/eam_tables.h"

namespace minimd {

// The polynomials of pairs.
template <typename Real>
class EamPairTable {
  public:
    // Throws UsageError where densities and energies are not at the same distances.
    explicit EamPairTable(const EamTables& tables);
    EamPairTable(const EamPairTable&) = delete;
    EamPairTable& operator=(const EamPairTable&) = delete;

    const EamTable<Real>& table() const { return table_; }

  private:
    AlignedVector<Real> coefficients_;
    EamTable<Real> table_;
};

template <typename Real>
class EamForces final : public Forces<Real> {
  public:
    // `tables` outlive this. Their cutoff, not that of the settings, counts; throws UsageError if
    // the lists do not reach so far.
    EamForces(const Settings& settings, const Kernels<Real>& kernels, const EamTables& tables);

    EnergyVirial compute(Particles<Real>& particles, Neighborhood<Real>& neighborhood, bool fresh,
                         bool energy, Times& times) override;

    // The same in pieces, for pairs of `lists`, which are as `neighborhood` makes them, and positions of
    // `slots` slots at `x`. Local.
    //
    // Sets the densities, of ghosts what this rank's pairs add to them. Returns the pair energies.
    double all_densities(const Real* x, std::int32_t slots, const Neighborhood<Real>& neighborhood,
                         const std::vector<PairLists>& lists, bool energy, AlignedVector<Real>& density);
    // Sets the derivatives of the embedding energies of slots that hold atoms. Returns the energies.
    double embed(const Real* x, Layout layout, std::int32_t slots, const Real* density, Real* derivative);
    // Sets the forces of the pairs of the last all_densities(). Returns the virial.
    double all_forces(const Real* x, std::int32_t slots, const Neighborhood<Real>& neighborhood,
                      const Real* derivative, bool energy, AlignedVector<Real>& f);

    const EamTable<Real>& table() const { return table_.table(); }
    // What keeps the pairs, for those who compute parts of them.
    EamLoops<Real>& loops() { return loops_; }

  private:
    // Pair energies.
    double densities(const Real* x, const Neighborhood<Real>& neighborhood,
                     const std::vector<PairLists>& lists, PairPart part, bool energy, Real* density);
    // The virial.
    double forces(const Real* x, const Neighborhood<Real>& neighborhood, const Real* derivative,
                  PairPart part, bool energy, Real* f);

    const EamTables& tables_;
    EamPairTable<Real> table_;
    EamLoops<Real> loops_;
    AlignedVector<Real> density_, derivative_;
};

}  // namespace minimd
