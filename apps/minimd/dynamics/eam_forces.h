// Forces of the embedded-atom method: densities, their embedding, forces; with what travels between ranks
// hidden behind pairs that do not need it.
//
// An eighth shell leaves parts of an atom's density with ghosts of it, which go home first; in all shells the
// derivatives of the embedding energy then go out to ghosts. One caller at a time.
#pragma once

#include <vector>

#include "minimd/dynamics/forces.h"
#include "minimd/kernels/eam.h"
#include "minimd/setup/eam_tables.h"

namespace minimd {

// What EamPairs points at; grows as needed and is kept from step to step.
template <typename Real>
class EamPairStore {
  public:
    void clear() { pairs_.row_count = pairs_.block_count = pairs_.pair_count = 0; }
    // With room for what `rows` can yield.
    EamPairs<Real>& room_for(const PairRows& rows, int lanes);
    const EamPairs<Real>& pairs() const { return pairs_; }

  private:
    EamPairs<Real> pairs_;
    AlignedVector<EamRow> rows_;
    AlignedVector<EamBlock> blocks_;
    AlignedVector<Real> by_density_, by_distance_;
};

template <typename Real>
class EamForces final : public Forces<Real> {
  public:
    // `tables` outlive this. Their cutoff, not that of the settings, counts; throws UsageError if
    // the lists do not reach so far.
    EamForces(const Settings& settings, const Kernels<Real>& kernels, const EamTables& tables);

    EnergyVirial compute(Particles<Real>& particles, Neighborhood<Real>& neighborhood, bool fresh,
                         bool energy, Times& times) override;

    // The polynomials of pairs.
    const EamTable<Real>& table() const { return table_; }

  private:
    void begin_step(Particles<Real>& particles);
    // Pair energies.
    double densities(const Particles<Real>& particles, Neighborhood<Real>& neighborhood, PairPart part,
                     bool energy);
    // Of slots from `first` to `end`, the threads' into the first's.
    void gather_densities(std::int32_t first, std::int32_t end);
    // Embedding energies.
    double embed(const Particles<Real>& particles);
    // The virial.
    double forces(Particles<Real>& particles, Neighborhood<Real>& neighborhood, PairPart part, bool energy);
    void gather_forces(Particles<Real>& particles, std::int32_t first, std::int32_t end);

    struct Thread {
        AlignedVector<Real> density, f;  // of the first the whole rank's; its forces are the particles'
        EamPairStore<Real> first_interior, second_interior, boundary;

        EamPairStore<Real>& store(PairPart part) {
            return part == PairPart::boundary         ? boundary
                   : part == PairPart::first_interior ? first_interior
                                                      : second_interior;
        }
    };

    const EamTables& tables_;
    EamKernels<Real> kernels_;
    int lanes_;
    AlignedVector<Real> coefficients_;
    EamTable<Real> table_;
    AlignedVector<Real> derivative_;
    std::vector<Thread> threads_;
};

}  // namespace minimd
