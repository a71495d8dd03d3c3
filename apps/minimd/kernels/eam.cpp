// The embedded-atom method between a cluster of 4 atoms and blocks of N.
//
// Few of the lanes that a cluster meets are in range, and polynomials are expensive. So the kernel packs the
// squared distances in range of up to `most_blocks` blocks, evaluates the polynomials for them, and spreads
// the results back to their lanes. It loads coefficients by rows and transposes them, which is faster than
// gathering.
#include "minimd/kernels/eam.h"
#include "minimd/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "minimd/kernels/eam.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "minimd/kernels/pairs-inl.h"
#include "minimd/kernels/splines-inl.h"
#include "minimd/kernels/spread-inl.h"

HWY_BEFORE_NAMESPACE();
namespace minimd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

constexpr std::int32_t most_blocks = 32;

// The positions of a cluster's atoms, each one in all lanes.
template <typename Real, int N>
struct ClusterPositions {
    using D = hn::FixedTag<Real, N>;
    using V = hn::Vec<D>;
    V x0, x1, x2, x3, y0, y1, y2, y3, z0, z1, z2, z3;

    HWY_INLINE ClusterPositions(const Real* x, std::int32_t cluster) {
        const Real* xi = x + slot_address<N>(cluster * cluster_size);
        const D d;
        const auto at = [&](int r, int dim) HWY_ATTR {
            return hn::Set(d, N == 2 ? xi[r / 2 * 3 * N + dim * N + r % 2] : xi[dim * N + r]);
        };
        x0 = at(0, 0), x1 = at(1, 0), x2 = at(2, 0), x3 = at(3, 0);
        y0 = at(0, 1), y1 = at(1, 1), y2 = at(2, 1), y3 = at(3, 1);
        z0 = at(0, 2), z1 = at(1, 2), z2 = at(2, 2), z3 = at(3, 2);
    }
};

template <class V>
HWY_INLINE V squared(V x, V y, V z) {
    return hn::MulAdd(z, z, hn::MulAdd(y, y, hn::Mul(x, x)));
}

template <typename Real, int N>
class Densities {
    using D = hn::FixedTag<Real, N>;
    using V = hn::Vec<D>;
    using M = hn::Mask<D>;
    using Packed = hn::CappedTag<Real, 32 / sizeof(Real)>;
    static constexpr std::size_t room = std::size_t{4} * N * most_blocks + 64 / sizeof(Real);

  public:
    template <bool energy_wanted, bool both_sides>
    HWY_INLINE double run(const Real* HWY_RESTRICT x, Real* HWY_RESTRICT density, const PairRows& pairs,
                          const EamTable<Real>& table, EamPairs<Real>& found) {
        const D d;
        const V cutoff2 = hn::Set(d, table.cutoff * table.cutoff);
        double energy = 0.0;
        for (const PairRow& row : pairs.rows) {
            const ClusterPositions<Real, N> c(x, row.cluster);
            std::int32_t at = row.begin;
            while (at < row.end) {
                const std::int32_t end = row.end - at > most_blocks ? at + most_blocks : row.end;
                const std::size_t first = found.block_count;
                std::size_t count = 0;
                EamBlock* HWY_RESTRICT entry = found.blocks + first;

                const auto meet = [&](std::int32_t block, auto masked) HWY_ATTR {
                    const Real* xj = x + block_address<N>(block);
                    const V xb = hn::Load(d, xj), yb = hn::Load(d, xj + N), zb = hn::Load(d, xj + 2 * N);
                    const V r0 = squared(hn::Sub(c.x0, xb), hn::Sub(c.y0, yb), hn::Sub(c.z0, zb));
                    const V r1 = squared(hn::Sub(c.x1, xb), hn::Sub(c.y1, yb), hn::Sub(c.z1, zb));
                    const V r2 = squared(hn::Sub(c.x2, xb), hn::Sub(c.y2, yb), hn::Sub(c.z2, zb));
                    const V r3 = squared(hn::Sub(c.x3, xb), hn::Sub(c.y3, yb), hn::Sub(c.z3, zb));
                    M m0 = hn::Lt(r0, cutoff2), m1 = hn::Lt(r1, cutoff2), m2 = hn::Lt(r2, cutoff2),
                      m3 = hn::Lt(r3, cutoff2);
                    if constexpr (masked.value) {
                        const V lane = hn::Iota(d, Real{0});
                        const auto own = static_cast<Real>(row.cluster * cluster_size - block * N);
                        m0 = hn::And(m0, counted<both_sides>(lane, hn::Set(d, own)));
                        m1 = hn::And(m1, counted<both_sides>(lane, hn::Set(d, own + 1)));
                        m2 = hn::And(m2, counted<both_sides>(lane, hn::Set(d, own + 2)));
                        m3 = hn::And(m3, counted<both_sides>(lane, hn::Set(d, own + 3)));
                    }
                    entry->block = block;
                    const std::size_t before = count;
                    count += pack(r0, m0, squares_ + count, entry->lanes.data());
                    count += pack(r1, m1, squares_ + count, entry->lanes.data() + 2);
                    count += pack(r2, m2, squares_ + count, entry->lanes.data() + 4);
                    count += pack(r3, m3, squares_ + count, entry->lanes.data() + 6);
                    entry += count > before ? 1 : 0;
                };
                for (; at < end && at < row.begin + row.masked; ++at)
                    meet(pairs.blocks[at], std::true_type{});
                for (; at < end; ++at)
                    meet(pairs.blocks[at], std::false_type{});
                if (count == 0) continue;

                found.block_count = static_cast<std::size_t>(entry - found.blocks);
                found.rows[found.row_count++] = {row.cluster, first, found.block_count};
                const double pair_energy = evaluate<energy_wanted>(table, count, found);
                if constexpr (energy_wanted) energy += pair_energy;
                found.pair_count += count;
                add_up<both_sides>(density, row.cluster, found.blocks + first,
                                   found.blocks + found.block_count);
            }
        }
        return energy;
    }

  private:
    static HWY_INLINE std::size_t pack(V r2, M in_range, Real* to, std::uint8_t* lanes) {
        const D d;
        hn::StoreU(hn::Compress(r2, in_range), d, to);
        hn::StoreMaskBits(d, in_range, lanes);
        return hn::CountTrue(d, in_range);
    }

    // Computes the pairs' densities, and what the forces will need.
    template <bool energy_wanted>
    HWY_INLINE double evaluate(const EamTable<Real>& table, std::size_t count, EamPairs<Real>& found) {
        const Packed d;
        using P = hn::Vec<Packed>;
        constexpr std::size_t step = hn::MaxLanes(d);
        hn::StoreU(hn::Set(d, table.cutoff * table.cutoff), d, squares_ + count);
        const P per_spacing = hn::Set(d, table.per_spacing);
        Real* const by_density = found.by_density + found.pair_count;
        Real* const by_distance = found.by_distance + found.pair_count;
        P energies = hn::Zero(d);
        for (std::size_t i = 0; i < count; i += step) {
            const P r2 = hn::Load(d, squares_ + i);
            const P inverse = inverse_sqrt(d, r2);
            const SplineRows<Packed> rows(table, hn::Mul(hn::Mul(r2, inverse), per_spacing));
            const auto density = rows.at(0);
            const auto energy = rows.at(4);
            hn::Store(density.value, d, densities_ + i);
            const P pair_energy = hn::Mul(energy.value, inverse);
            const P pair_slope = hn::NegMulAdd(energy.slope, per_spacing, pair_energy);
            hn::StoreU(hn::Neg(hn::Mul(hn::Mul(density.slope, per_spacing), inverse)), d, by_density + i);
            hn::StoreU(hn::Mul(hn::Mul(pair_slope, inverse), inverse), d, by_distance + i);
            if constexpr (energy_wanted)
                energies = hn::Add(energies, count - i >= step
                                                 ? pair_energy
                                                 : hn::IfThenElseZero(hn::FirstN(d, count - i), pair_energy));
        }
        return energy_wanted ? static_cast<double>(hn::GetLane(hn::SumOfLanes(d, energies))) : 0.0;
    }

    template <bool both_sides>
    HWY_INLINE void add_up(Real* HWY_RESTRICT density, std::int32_t cluster, const EamBlock* block,
                           const EamBlock* end) const {
        const D d;
        const Real* from = densities_;
        V own0 = hn::Zero(d), own1 = own0, own2 = own0, own3 = own0;
        for (; block != end; ++block) {
            const V a = spread<N>(d, from, block->lanes.data());
            const V b = spread<N>(d, from, block->lanes.data() + 2);
            const V e = spread<N>(d, from, block->lanes.data() + 4);
            const V g = spread<N>(d, from, block->lanes.data() + 6);
            own0 = hn::Add(own0, a);
            own1 = hn::Add(own1, b);
            own2 = hn::Add(own2, e);
            own3 = hn::Add(own3, g);
            if constexpr (both_sides) {
                Real* to = density + static_cast<std::size_t>(block->block) * N;
                hn::Store(hn::Add(hn::Load(d, to), hn::Add(hn::Add(a, b), hn::Add(e, g))), d, to);
            }
        }
        Real* to = density + static_cast<std::size_t>(cluster) * cluster_size;
        if constexpr (N == 2) {
            const V ab = hn::Add(hn::InterleaveLower(d, own0, own1), hn::InterleaveUpper(d, own0, own1));
            const V eg = hn::Add(hn::InterleaveLower(d, own2, own3), hn::InterleaveUpper(d, own2, own3));
            hn::StoreU(hn::Add(hn::LoadU(d, to), ab), d, to);
            hn::StoreU(hn::Add(hn::LoadU(d, to + 2), eg), d, to + 2);
        } else {
            const hn::FixedTag<Real, 4> four;
            hn::StoreU(hn::Add(hn::LoadU(four, to), sums_of_lanes(d, own0, own1, own2, own3)), four, to);
        }
    }

    HWY_ALIGN Real squares_[room];
    HWY_ALIGN Real densities_[room];
};

template <typename Real, int N, bool virial_wanted, bool both_sides>
HWY_INLINE double push(const Real* HWY_RESTRICT x, const Real* HWY_RESTRICT derivative, Real* HWY_RESTRICT f,
                       const EamPairs<Real>& pairs) {
    using D = hn::FixedTag<Real, N>;
    using V = hn::Vec<D>;
    const D d;
    const Real* by_density = pairs.by_density;
    const Real* by_distance = pairs.by_distance;
    double virial = 0.0;
    for (const EamRow* row = pairs.rows; row != pairs.rows + pairs.row_count; ++row) {
        const ClusterPositions<Real, N> c(x, row->cluster);
        const Real* own = derivative + static_cast<std::size_t>(row->cluster) * cluster_size;
        const V s0 = hn::Set(d, own[0]), s1 = hn::Set(d, own[1]), s2 = hn::Set(d, own[2]),
                s3 = hn::Set(d, own[3]);
        V fx0 = hn::Zero(d), fx1 = fx0, fx2 = fx0, fx3 = fx0;
        V fy0 = fx0, fy1 = fx0, fy2 = fx0, fy3 = fx0;
        V fz0 = fx0, fz1 = fx0, fz2 = fx0, fz3 = fx0;
        V virials = fx0;
        for (std::size_t b = row->begin; b < row->end; ++b) {
            const EamBlock& block = pairs.blocks[b];
            const Real* xj = x + block_address<N>(block.block);
            Real* fj = f + block_address<N>(block.block);
            const V xb = hn::Load(d, xj), yb = hn::Load(d, xj + N), zb = hn::Load(d, xj + 2 * N);
            const V sb = hn::Load(d, derivative + static_cast<std::size_t>(block.block) * N);
            V bx = fx0, by = fx0, bz = fx0;
            if constexpr (both_sides) {
                bx = hn::Load(d, fj);
                by = hn::Load(d, fj + N);
                bz = hn::Load(d, fj + 2 * N);
            }
            const auto meet = [&](int r, V xr, V yr, V zr, V sr, V& fx, V& fy, V& fz) HWY_ATTR {
                const V of_density = spread<N>(d, by_density, block.lanes.data() + 2 * r);
                const V of_distance = spread<N>(d, by_distance, block.lanes.data() + 2 * r);
                const V p = hn::MulAdd(hn::Add(sr, sb), of_density, of_distance);
                const V dx = hn::Sub(xr, xb), dy = hn::Sub(yr, yb), dz = hn::Sub(zr, zb);
                fx = hn::MulAdd(dx, p, fx);
                fy = hn::MulAdd(dy, p, fy);
                fz = hn::MulAdd(dz, p, fz);
                if constexpr (both_sides) {
                    bx = hn::NegMulAdd(dx, p, bx);
                    by = hn::NegMulAdd(dy, p, by);
                    bz = hn::NegMulAdd(dz, p, bz);
                }
                if constexpr (virial_wanted) virials = hn::MulAdd(squared(dx, dy, dz), p, virials);
            };
            meet(0, c.x0, c.y0, c.z0, s0, fx0, fy0, fz0);
            meet(1, c.x1, c.y1, c.z1, s1, fx1, fy1, fz1);
            meet(2, c.x2, c.y2, c.z2, s2, fx2, fy2, fz2);
            meet(3, c.x3, c.y3, c.z3, s3, fx3, fy3, fz3);
            if constexpr (both_sides) {
                hn::Store(bx, d, fj);
                hn::Store(by, d, fj + N);
                hn::Store(bz, d, fj + 2 * N);
            }
        }
        Real* fi = f + slot_address<N>(row->cluster * cluster_size);
        add_rows<N>(d, fi, fx0, fx1, fx2, fx3);
        add_rows<N>(d, fi + N, fy0, fy1, fy2, fy3);
        add_rows<N>(d, fi + 2 * N, fz0, fz1, fz2, fz3);
        if constexpr (virial_wanted) virial += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, virials)));
    }
    return virial;
}

template <typename Real, int N>
double eam_density(const Real* x, Real* density, const PairRows& rows, const EamTable<Real>& table,
                   ForceFlags flags, EamPairs<Real>& pairs) {
    Densities<Real, N> densities;
    if (flags.both_sides) {
        if (flags.energy) return densities.template run<true, true>(x, density, rows, table, pairs);
        return densities.template run<false, true>(x, density, rows, table, pairs);
    }
    if (flags.energy) return densities.template run<true, false>(x, density, rows, table, pairs);
    return densities.template run<false, false>(x, density, rows, table, pairs);
}

template <typename Real, int N>
double eam_force(const Real* x, const Real* derivative, Real* f, const EamPairs<Real>& pairs,
                 ForceFlags flags) {
    if (flags.both_sides) {
        if (flags.energy) return push<Real, N, true, true>(x, derivative, f, pairs);
        return push<Real, N, false, true>(x, derivative, f, pairs);
    }
    if (flags.energy) return push<Real, N, true, false>(x, derivative, f, pairs);
    return push<Real, N, false, false>(x, derivative, f, pairs);
}

template <typename Real>
EamKernels<Real> choose(int lanes) {
    return {for_lanes<Real, EamDensityKernel<Real>>(lanes, [](auto n) { return &eam_density<Real, n()>; }),
            for_lanes<Real, EamForceKernel<Real>>(lanes, [](auto n) { return &eam_force<Real, n()>; })};
}
#else
template <typename Real>
EamKernels<Real> choose(int) {
    return {};
}
#endif

EamKernels<double> choose_eam_double(int lanes) {
    return choose<double>(lanes);
}
EamKernels<float> choose_eam_float(int lanes) {
    return choose<float>(lanes);
}

}  // namespace minimd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace minimd {

HWY_EXPORT(choose_eam_double);
HWY_EXPORT(choose_eam_float);

template <>
EamKernels<double> eam_kernels<double>(int lanes) {
    return HWY_DYNAMIC_DISPATCH(choose_eam_double)(lanes);
}
template <>
EamKernels<float> eam_kernels<float>(int lanes) {
    return HWY_DYNAMIC_DISPATCH(choose_eam_float)(lanes);
}

}  // namespace minimd
#endif
