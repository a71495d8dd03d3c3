#include "minimd/roofline/counts.h"

namespace minimd {

namespace {

constexpr double index_bytes = sizeof(std::int32_t);
constexpr double difference = 3, square = 5, comparison = 1;
constexpr double own_force = 6, other_force = 6;
// An estimate and its refinement. Double precision takes more operations.
template <typename Real>
constexpr double reciprocal = sizeof(Real) == 8 ? 8 : 5;
template <typename Real>
constexpr double inverse_root = sizeof(Real) == 8 ? 11 : 7;

}  // namespace

template <typename Real>
ListCounts count_pairs(const Particles<Real>& particles, const PairRows& pairs, double cutoff,
                       bool both_sides) {
    ListCounts counts;
    const Layout layout = particles.layout;
    const auto lanes = static_cast<std::size_t>(layout.lanes);
    const double cutoff2 = cutoff * cutoff;
    for (const PairRow& row : pairs.rows) {
        counts.rows += 1;
        for (std::int32_t at = row.begin; at < row.end; ++at) {
            counts.blocks += 1;
            for (std::int32_t i = row.cluster * cluster_size; i < (row.cluster + 1) * cluster_size; ++i) {
                const Real* a = particles.x.data() + layout.address(i);
                for (std::int32_t lane = 0; lane < layout.lanes; ++lane) {
                    const std::int32_t j = pairs.blocks[at] * layout.lanes + lane;
                    if (at - row.begin < row.masked && (both_sides ? j <= i : j == i)) continue;
                    const Real* b = particles.x.data() + layout.address(j);
                    double distance2 = 0;
                    for (std::size_t d = 0; d < 3; ++d) {
                        const auto gap =
                            static_cast<double>(a[d * lanes]) - static_cast<double>(b[d * lanes]);
                        distance2 += gap * gap;
                    }
                    counts.in_range += distance2 < cutoff2 ? 1 : 0;
                }
            }
        }
    }
    counts.tested = counts.blocks * cluster_size * static_cast<double>(layout.lanes);
    return counts;
}

template <typename Real>
LoopCounts count_lennard_jones(const ListCounts& pairs, int lanes, std::size_t slots) {
    constexpr double powers = 2, strength = 4;
    const double block = 3.0 * lanes * sizeof(Real), cluster = 3.0 * cluster_size * sizeof(Real);
    LoopCounts counts;
    counts.flops = pairs.tested * (difference + square + comparison + reciprocal<Real> + powers + strength +
                                   own_force + other_force);
    const double lists = pairs.blocks * index_bytes + pairs.rows * sizeof(PairRow);
    counts.moved = lists + pairs.blocks * 3 * block + pairs.rows * 3 * cluster;
    counts.least = lists + 9.0 * static_cast<double>(slots) * sizeof(Real);
    return counts;
}

template <typename Real>
LoopCounts count_eam_density(const ListCounts& pairs, const EamPairs<Real>& found, int lanes,
                             std::size_t slots) {
    constexpr double distance = 2, place = 1, polynomials = 20, products = 7, added = 2;
    const auto found_blocks = static_cast<double>(found.block_count),
               found_pairs = static_cast<double>(found.pair_count),
               found_rows = static_cast<double>(found.row_count);
    const double block = lanes * sizeof(Real);
    LoopCounts counts;
    counts.flops = pairs.tested * (difference + square + comparison) +
                   found_pairs * (inverse_root<Real> + distance + place + polynomials + products) +
                   found_blocks * cluster_size * lanes * added;
    const double lists = pairs.blocks * index_bytes + pairs.rows * sizeof(PairRow);
    const double left =
        found_blocks * sizeof(EamBlock) + found_rows * sizeof(EamRow) + found_pairs * 2 * sizeof(Real);
    constexpr double squares_and_densities = 4;  // written and read again
    counts.moved = lists + left + pairs.blocks * 3 * block + pairs.rows * 3 * cluster_size * sizeof(Real) +
                   found_pairs * (EamTable<Real>::row_size + squares_and_densities) * sizeof(Real) +
                   found_blocks * (sizeof(EamBlock) + 2 * block) +
                   found_rows * 2 * cluster_size * sizeof(Real);
    counts.least = lists + left + 5.0 * static_cast<double>(slots) * sizeof(Real);
    return counts;
}

template <typename Real>
LoopCounts count_eam_force(const EamPairs<Real>& found, int lanes, std::size_t slots) {
    constexpr double strength = 3;
    const auto found_blocks = static_cast<double>(found.block_count),
               found_pairs = static_cast<double>(found.pair_count),
               found_rows = static_cast<double>(found.row_count);
    LoopCounts counts;
    counts.flops = found_blocks * cluster_size * lanes * (strength + difference + own_force + other_force);
    const double left =
        found_blocks * sizeof(EamBlock) + found_rows * sizeof(EamRow) + found_pairs * 2 * sizeof(Real);
    counts.moved =
        left + found_blocks * 10 * lanes * sizeof(Real) + found_rows * 10 * cluster_size * sizeof(Real);
    counts.least = left + 10.0 * static_cast<double>(slots) * sizeof(Real);
    return counts;
}

#define MINIMD_COUNTS(Real)                                                                            \
    template ListCounts count_pairs(const Particles<Real>&, const PairRows&, double, bool);            \
    template LoopCounts count_lennard_jones<Real>(const ListCounts&, int, std::size_t);                \
    template LoopCounts count_eam_density(const ListCounts&, const EamPairs<Real>&, int, std::size_t); \
    template LoopCounts count_eam_force(const EamPairs<Real>&, int, std::size_t);
MINIMD_COUNTS(float)
MINIMD_COUNTS(double)
#undef MINIMD_COUNTS

}  // namespace minimd
