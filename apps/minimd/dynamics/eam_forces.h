// Forces of the embedded-atom method: densities, embedding, forces. While numbers travel between ranks, the
// rank computes pairs that do not need them.
//
// With an eighth shell, a ghost holds a part of its atom's density, which first goes home. With every shell,
// the derivatives of the embedding energy then go out to the ghosts. One caller at a time.
#pragma once

#include <vector>

#include "minimd/dynamics/forces.h"
#include "minimd/kernels/eam_loops.h"
#include "minimd/setup/eam_tables.h"

namespace minimd {

// The polynomials of density and pair energy, as the kernels read them.
template <typename Real>
class EamPairTable {
  public:
    // Throws UsageError if densities and energies are not tabulated at the same distances.
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
    // `tables` must outlive this object. Their cutoff is used, not that of the settings. Throws UsageError if
    // the lists do not reach that far.
    EamForces(const Settings& settings, const Kernels<Real>& kernels, const EamTables& tables);

    EnergyVirial compute(Particles<Real>& particles, Neighborhood<Real>& neighborhood, bool fresh,
                         bool energy, Times& times) override;

    // The same computation in pieces, over the pairs of `lists`, which have the form that `neighborhood`
    // makes, and for positions of `slots` slots at `x`. Local.
    //
    // Sets the densities. A ghost's density is the part that this rank's pairs add. Returns the pair
    // energies.
    double all_densities(const Real* x, std::int32_t slots, const Neighborhood<Real>& neighborhood,
                         const std::vector<PairLists>& lists, bool energy, AlignedVector<Real>& density);
    // Sets the derivatives of the embedding energies, for slots that hold atoms. Returns the energies.
    double embed(const Real* x, Layout layout, std::int32_t slots, const Real* density, Real* derivative);
    // Sets the forces of the pairs of the last all_densities(). Returns the virial.
    double all_forces(const Real* x, std::int32_t slots, const Neighborhood<Real>& neighborhood,
                      const Real* derivative, bool energy, AlignedVector<Real>& f);

    const EamTable<Real>& table() const { return table_.table(); }
    // The loops, which keep the pairs, for a caller that computes only a part of them.
    EamLoops<Real>& loops() { return loops_; }

  private:
    // Adds the densities of one part of the pairs. Returns the pair energies.
    double densities(const Real* x, const Neighborhood<Real>& neighborhood,
                     const std::vector<PairLists>& lists, PairPart part, bool energy, Real* density);
    // Adds the forces of one part of the pairs. Returns the virial.
    double forces(const Real* x, const Neighborhood<Real>& neighborhood, const Real* derivative,
                  PairPart part, bool energy, Real* f);

    const EamTables& tables_;
    EamPairTable<Real> table_;
    EamLoops<Real> loops_;
    AlignedVector<Real> density_, derivative_;
};

}  // namespace minimd
