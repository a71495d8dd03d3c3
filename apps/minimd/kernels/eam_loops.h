// The two loops of the embedded-atom method on several threads, and the pairs that the first leaves for the
// second. The first thread adds to the caller's array. Each other thread adds to an array of its own, and
// these are gathered afterwards. One caller at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "minimd/base/layout.h"
#include "minimd/kernels/eam.h"

namespace minimd {

// The memory that EamPairs points to. It grows as needed and is kept from step to step.
template <typename Real>
class EamPairStore {
  public:
    void clear() { pairs_.row_count = pairs_.block_count = pairs_.pair_count = 0; }
    // Makes room for the pairs that `rows` can yield.
    EamPairs<Real>& room_for(const PairRows& rows, int lanes);
    const EamPairs<Real>& pairs() const { return pairs_; }

  private:
    EamPairs<Real> pairs_;
    AlignedVector<EamRow> rows_;
    AlignedVector<EamBlock> blocks_;
    AlignedVector<Real> by_density_, by_distance_;
};

template <typename Real>
class EamLoops {
  public:
    // Rows may come in several portions. The pairs of each portion are kept under its number, below this.
    static constexpr std::size_t portions = 3;

    // Kernels with `lanes` lanes must exist.
    EamLoops(int lanes, std::size_t threads);

    std::size_t threads() const { return threads_.size(); }

    // Begins a step with `slots` slots: sets the threads' own arrays to 0 and forgets all pairs.
    void begin(std::int32_t slots);

    // Adds the densities of parts[t] on thread t, for each t. Returns the pair energies if flags.energy.
    // Pairs that are listed from both of their atoms count half.
    double densities(const Real* x, std::span<const PairRows> parts, const EamTable<Real>& table,
                     ForceFlags flags, std::size_t portion, Real* density);
    // Adds the densities of all threads but the first, for slots from `first` to `end`. At most once for each
    // slot.
    void gather_densities(Real* density, std::int32_t first, std::int32_t end) const;

    // Adds the forces of the pairs in a portion. Returns the virial if flags.energy, counted like the
    // energies above.
    double forces(const Real* x, const Real* derivative, ForceFlags flags, std::size_t portion, Real* f);
    void gather_forces(Real* f, std::int32_t first, std::int32_t end) const;

  private:
    struct Thread {
        AlignedVector<Real> density, f;  // empty for the first thread
        std::array<EamPairStore<Real>, portions> pairs;
    };

    EamKernels<Real> kernels_;
    int lanes_;
    std::vector<Thread> threads_;
};

}  // namespace minimd
