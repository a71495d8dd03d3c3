// The search for pairs: which blocks come within range of which clusters.
//
// Ghosts are in zones. Zone z holds the images that are beyond this rank's subdomain, always upwards: in x if
// bit 0 of z is set, in y for bit 1, in z for bit 2. Zone 0 is the rank's own atoms. Every rank lists the
// pairs whose lowest corner is in its subdomain, which are those of two zones without a common bit. So each
// pair of the system is listed once, with half the ghosts of a full shell (the eighth shell of Bowers, Dror
// and Shaw, J. Comput. Phys. 221, 2007). A list for one-sided forces needs a full shell instead, which is a
// single zone with number 1.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "minimd/cells/columns.h"
#include "minimd/cells/particles.h"
#include "minimd/kernels/kernels.h"

namespace minimd {

struct PairList {
    std::vector<PairRow> rows;
    AlignedVector<std::int32_t> blocks;

    PairRows view() const { return {rows, blocks.data()}; }
    PairRows view(std::size_t first, std::size_t count) const {
        return {std::span(rows).subspan(first, count), blocks.data()};
    }
    void clear() {
        rows.clear();
        blocks.clear();
    }
};

// The pairs between a rank's own atoms, and those that need ghosts. Each thread has its own.
struct PairLists {
    PairList interior, boundary;

    void clear() {
        interior.clear();
        boundary.clear();
    }
};

// The parts that are computed one after the other while ghosts travel out, and then home.
enum class PairPart { first_interior, second_interior, interior, boundary };

// Returns one part of the pairs. The two halves of the interior have about the same number of blocks.
PairRows rows_of(const PairLists& lists, PairPart part);

template <typename Real>
struct Zone {
    Columns<Real> columns;
    std::int32_t first_slot = 0, end_slot = 0;
};

template <typename Real>
class PairSearch {
  public:
    explicit PairSearch(const Kernels<Real>& kernels) : kernels_(kernels) {}

    enum class Shell {
        eighth,     // all pairs once, with zones as above
        one_sided,  // own pairs once, pairs with ghosts from the own atom's side
        full        // all pairs from both sides
    };

    // What a search is for, and which part of the clusters it covers: part `part` of `parts`. Parts may be
    // searched at the same time.
    struct Task {
        Shell shell;
        double range;
        int part = 0, parts = 1;
    };

    // Compute the boxes around clusters and blocks: of the rank's own atoms, for find_interior(), and of the
    // ghosts, for find_boundary(). One thread at a time.
    void enclose_own(const Particles<Real>& particles);
    void enclose_ghosts(const Particles<Real>& particles);

    // Find the pairs among the rank's own atoms, which are zone 0, and the pairs that need ghosts. Each
    // replaces its list.
    void find_interior(const Particles<Real>& particles, const Zone<Real>& own, const Task& task,
                       PairList& interior) const;
    void find_boundary(const Particles<Real>& particles, const std::vector<Zone<Real>>& zones,
                       const Task& task, PairList& boundary) const;

  private:
    void enclose(const Particles<Real>& particles, std::int32_t from_slot, std::int32_t end_slot);
    // Finds pairs between the clusters of columns [first_column, end_column) of `zone` and the blocks of
    // `others`.
    void find_between(const Particles<Real>& particles, const Zone<Real>& zone, int first_column,
                      int end_column, std::span<const Zone<Real>* const> others, bool own, bool later_only,
                      float range, PairList& list) const;
    void open_windows(const Zone<Real>& other, const Box& column, float range, std::int32_t after_block,
                      Windows& windows) const;

    const Kernels<Real>& kernels_;
    std::vector<Box> clusters_;
    std::array<AlignedVector<float>, 3> block_lo_, block_hi_;
    AlignedVector<float> rounded_x_;  // used unless positions are in single precision
    float farthest_ = 0.0F;           // largest absolute value of a coordinate
};

}  // namespace minimd
