// Lennard-Jones between a cluster of 4 atoms and a block of N. The four rows are independent, so that the
// latency of one hides behind the others. The block's positions and forces are loaded once for all four.
#include "minimd/kernels/tables.h"
#include "minimd/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "minimd/kernels/lennard_jones.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "minimd/kernels/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace minimd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

template <typename Real, int N>
class LennardJones {
    using D = hn::FixedTag<Real, N>;
    using V = hn::Vec<D>;
    using M = hn::Mask<D>;

  public:
    LennardJones(const LjParameters& p)
        : cutoff2_(static_cast<Real>(p.cutoff * p.cutoff)),
          repulsion_(static_cast<Real>(48 * p.epsilon * power(p.sigma, 12))),
          attraction_(static_cast<Real>(24 * p.epsilon * power(p.sigma, 6))) {}

    template <bool energy_wanted, bool both_sides>
    HWY_INLINE EnergyVirial run(const Real* HWY_RESTRICT x, Real* HWY_RESTRICT f, const PairRows& pairs,
                                int intensity) const {
        const D d;
        double energy = 0.0, virial = 0.0;
        const V cutoff2 = hn::Set(d, cutoff2_), repulsion = hn::Set(d, repulsion_),
                attraction = hn::Set(d, attraction_);
        for (const PairRow& row : pairs.rows) {
            const Real* xi = x + slot_address<N>(row.cluster * cluster_size);
            const auto at = [&](int r, int dim) HWY_ATTR {
                return hn::Set(d, N == 2 ? xi[r / 2 * 3 * N + dim * N + r % 2] : xi[dim * N + r]);
            };
            const V x0 = at(0, 0), x1 = at(1, 0), x2 = at(2, 0), x3 = at(3, 0);
            const V y0 = at(0, 1), y1 = at(1, 1), y2 = at(2, 1), y3 = at(3, 1);
            const V z0 = at(0, 2), z1 = at(1, 2), z2 = at(2, 2), z3 = at(3, 2);
            V fx0 = hn::Zero(d), fx1 = fx0, fx2 = fx0, fx3 = fx0;
            V fy0 = fx0, fy1 = fx0, fy2 = fx0, fy3 = fx0;
            V fz0 = fx0, fz1 = fx0, fz2 = fx0, fz3 = fx0;
            V energies = fx0, virials = fx0;

            const auto meet = [&](std::int32_t block, auto masked) HWY_ATTR {
                const Real* xj = x + block_address<N>(block);
                Real* fj = f + block_address<N>(block);
                const V xb = hn::Load(d, xj), yb = hn::Load(d, xj + N), zb = hn::Load(d, xj + 2 * N);
                const V dx0 = hn::Sub(x0, xb), dx1 = hn::Sub(x1, xb), dx2 = hn::Sub(x2, xb),
                        dx3 = hn::Sub(x3, xb);
                const V dy0 = hn::Sub(y0, yb), dy1 = hn::Sub(y1, yb), dy2 = hn::Sub(y2, yb),
                        dy3 = hn::Sub(y3, yb);
                const V dz0 = hn::Sub(z0, zb), dz1 = hn::Sub(z1, zb), dz2 = hn::Sub(z2, zb),
                        dz3 = hn::Sub(z3, zb);
                const V r0 = square(dx0, dy0, dz0), r1 = square(dx1, dy1, dz1), r2 = square(dx2, dy2, dz2),
                        r3 = square(dx3, dy3, dz3);
                M m0 = hn::Lt(r0, cutoff2), m1 = hn::Lt(r1, cutoff2), m2 = hn::Lt(r2, cutoff2),
                  m3 = hn::Lt(r3, cutoff2);
                if constexpr (masked.value) {
                    const V lane = hn::Iota(d, Real{0});
                    const auto first = static_cast<Real>(row.cluster * cluster_size - block * N);
                    m0 = hn::And(m0, counted<both_sides>(lane, hn::Set(d, first)));
                    m1 = hn::And(m1, counted<both_sides>(lane, hn::Set(d, first + 1)));
                    m2 = hn::And(m2, counted<both_sides>(lane, hn::Set(d, first + 2)));
                    m3 = hn::And(m3, counted<both_sides>(lane, hn::Set(d, first + 3)));
                }
                V e0, e1, e2, e3;
                const V p0 = pair<energy_wanted>(r0, m0, repulsion, attraction, intensity, e0);
                const V p1 = pair<energy_wanted>(r1, m1, repulsion, attraction, intensity, e1);
                const V p2 = pair<energy_wanted>(r2, m2, repulsion, attraction, intensity, e2);
                const V p3 = pair<energy_wanted>(r3, m3, repulsion, attraction, intensity, e3);
                if constexpr (energy_wanted) {
                    energies = hn::Add(energies, hn::Add(hn::Add(e0, e1), hn::Add(e2, e3)));
                    // Out of range, r2 may be large, but it is finite, and p is 0.
                    virials = hn::MulAdd(r0, p0,
                                         hn::MulAdd(r1, p1, hn::MulAdd(r2, p2, hn::MulAdd(r3, p3, virials))));
                }
                fx0 = hn::MulAdd(dx0, p0, fx0);
                fx1 = hn::MulAdd(dx1, p1, fx1);
                fx2 = hn::MulAdd(dx2, p2, fx2);
                fx3 = hn::MulAdd(dx3, p3, fx3);
                fy0 = hn::MulAdd(dy0, p0, fy0);
                fy1 = hn::MulAdd(dy1, p1, fy1);
                fy2 = hn::MulAdd(dy2, p2, fy2);
                fy3 = hn::MulAdd(dy3, p3, fy3);
                fz0 = hn::MulAdd(dz0, p0, fz0);
                fz1 = hn::MulAdd(dz1, p1, fz1);
                fz2 = hn::MulAdd(dz2, p2, fz2);
                fz3 = hn::MulAdd(dz3, p3, fz3);
                if constexpr (both_sides) {
                    subtract(fj, dx0, p0, dx1, p1, dx2, p2, dx3, p3);
                    subtract(fj + N, dy0, p0, dy1, p1, dy2, p2, dy3, p3);
                    subtract(fj + 2 * N, dz0, p0, dz1, p1, dz2, p2, dz3, p3);
                }
            };

            std::int32_t at_block = row.begin;
            for (; at_block < row.begin + row.masked; ++at_block)
                meet(pairs.blocks[at_block], std::true_type{});
            for (; at_block < row.end; ++at_block)
                meet(pairs.blocks[at_block], std::false_type{});

            Real* fi = f + slot_address<N>(row.cluster * cluster_size);
            add_rows<N>(d, fi, fx0, fx1, fx2, fx3);
            add_rows<N>(d, fi + N, fy0, fy1, fy2, fy3);
            add_rows<N>(d, fi + 2 * N, fz0, fz1, fz2, fz3);
            if constexpr (energy_wanted) {
                energy += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, energies)));
                virial += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, virials)));
            }
        }
        return {energy, virial};
    }

  private:
    static double power(double base, int n) {
        double result = 1.0;
        for (int i = 0; i < n; ++i)
            result *= base;
        return result;
    }

    static HWY_INLINE V square(V x, V y, V z) { return hn::MulAdd(z, z, hn::MulAdd(y, y, hn::Mul(x, x))); }

    static HWY_INLINE void subtract(Real* HWY_RESTRICT to, V d0, V p0, V d1, V p1, V d2, V p2, V d3, V p3) {
        const D d;
        const V a = hn::NegMulAdd(d0, p0, hn::Load(d, to)), b = hn::Mul(d1, p1);
        hn::Store(hn::Sub(hn::NegMulAdd(d2, p2, a), hn::MulAdd(d3, p3, b)), d, to);
    }

    // Returns the force divided by the distance; 0 where `in_range` is not set.
    template <bool energy_wanted>
    static HWY_INLINE V pair(V r2, M in_range, V repulsion, V attraction, int intensity, V& energy) {
        const D d;
        V inverse2 = reciprocal(d, r2);
        if (HWY_UNLIKELY(intensity > 1)) {
            // Takes the mean of 1/r2 over values that differ by less than their rounding. A compiler cannot
            // leave any of this out.
            V sum = inverse2;
            for (int k = 1; k < intensity; ++k) {
                const V again = hn::MulAdd(sum, hn::Set(d, tiny<Real>()), r2);
                V s = reciprocal(d, again);
                s = hn::Mul(hn::Mul(s, again), s);
                sum = hn::Add(sum, s);
            }
            inverse2 = hn::Mul(sum, hn::Set(d, static_cast<Real>(1.0 / intensity)));
        }
        // Set out-of-range lanes to zero before taking high powers. Those of fillers' distances are subnormal
        // in single precision, and many processors are slow with subnormal numbers.
        inverse2 = hn::IfThenElseZero(in_range, inverse2);
        const V inverse6 = hn::Mul(hn::Mul(inverse2, inverse2), inverse2);
        const V force = hn::Mul(hn::MulSub(repulsion, inverse6, attraction), hn::Mul(inverse6, inverse2));
        if constexpr (energy_wanted) {
            // 4 eps (s12 - s6) is one twelfth of the repulsion minus one sixth of the attraction.
            const V twelfth = hn::Set(d, static_cast<Real>(1.0 / 12)),
                    sixth = hn::Set(d, static_cast<Real>(1.0 / 6));
            energy = hn::Mul(inverse6,
                             hn::MulSub(hn::Mul(repulsion, twelfth), inverse6, hn::Mul(attraction, sixth)));
        }
        return force;
    }

    template <typename T>
    static T tiny() {
        return sizeof(T) == 4 ? T(1e-30) : T(1e-100);
    }

    Real cutoff2_, repulsion_, attraction_;
};

template <typename Real, int N>
EnergyVirial lennard_jones(const Real* x, Real* f, const PairRows& pairs, const LjParameters& p,
                           ForceFlags flags) {
    const LennardJones<Real, N> kernel(p);
    if (flags.both_sides) {
        if (flags.energy) return kernel.template run<true, true>(x, f, pairs, p.intensity);
        return kernel.template run<false, true>(x, f, pairs, p.intensity);
    }
    if (flags.energy) return kernel.template run<true, false>(x, f, pairs, p.intensity);
    return kernel.template run<false, false>(x, f, pairs, p.intensity);
}

template <typename Real>
LennardJonesKernel<Real> choose(int lanes) {
    return for_lanes<Real, LennardJonesKernel<Real>>(lanes, [](auto n) { return &lennard_jones<Real, n()>; });
}
#else
template <typename Real>
LennardJonesKernel<Real> choose(int) {
    return nullptr;
}
#endif

LennardJonesKernel<double> choose_lennard_jones_double(int lanes) {
    return choose<double>(lanes);
}
LennardJonesKernel<float> choose_lennard_jones_float(int lanes) {
    return choose<float>(lanes);
}

}  // namespace minimd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace minimd {

HWY_EXPORT(choose_lennard_jones_double);
HWY_EXPORT(choose_lennard_jones_float);

template <>
LennardJonesKernel<double> lennard_jones_kernel<double>(int lanes) {
    return HWY_DYNAMIC_DISPATCH(choose_lennard_jones_double)(lanes);
}
template <>
LennardJonesKernel<float> lennard_jones_kernel<float>(int lanes) {
    return HWY_DYNAMIC_DISPATCH(choose_lennard_jones_float)(lanes);
}

}  // namespace minimd
#endif
