// The code that the pair kernels share. Included once for each instruction set; see hwy/foreach_target.h.
#if defined(MINIMD_PAIRS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MINIMD_PAIRS_INL_H
#undef MINIMD_PAIRS_INL_H
#else
#define MINIMD_PAIRS_INL_H
#endif

#include <hwy/highway.h>

#include <type_traits>

#include "minimd/base/layout.h"
#include "minimd/kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace minimd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
// Calls make() with the number of lanes as a std::integral_constant, if this instruction set's vectors have
// that many lanes. Otherwise returns null.
template <typename Real, typename Function, typename Make>
Function for_lanes(int lanes, Make make) {
    Function function = nullptr;
    const auto offer = [&](auto n) {
        if constexpr (std::size_t{n()} * sizeof(Real) <= HWY_MAX_BYTES)
            if (lanes == n()) function = make(n);
    };
    if constexpr (sizeof(Real) == 8) offer(std::integral_constant<int, 2>{});
    offer(std::integral_constant<int, 4>{});
    offer(std::integral_constant<int, 8>{});
    if constexpr (sizeof(Real) == 4) offer(std::integral_constant<int, 16>{});
    return function;
}

// The index of a block's first real, and of a slot's x, for blocks of N lanes.
template <int N>
HWY_INLINE std::size_t block_address(std::int32_t block) {
    return static_cast<std::size_t>(block) * 3 * N;
}
template <int N>
HWY_INLINE std::size_t slot_address(std::int32_t slot) {
    return block_address<N>(slot / N) + static_cast<std::size_t>(slot % N);
}

// Returns 1/v to within a few units in the last place (double: about 2^-50).
template <class D, class V>
HWY_INLINE V reciprocal(D d, V v) {
    using T = hn::TFromD<D>;
    const V one = hn::Set(d, T{1});
    if constexpr (sizeof(T) == 4) {
#if HWY_TARGET == HWY_NEON
        return hn::Div(one, v);
#else
        const V y = hn::ApproximateReciprocal(v);
        return hn::MulAdd(y, hn::NegMulAdd(v, y, one), y);
#endif
    } else {
#if HWY_TARGET == HWY_AVX3
        V y;
        if constexpr (hn::MaxLanes(d) == 8) {
            y = V{_mm512_rcp14_pd(v.raw)};
        } else if constexpr (hn::MaxLanes(d) == 4) {
            y = V{_mm256_rcp14_pd(v.raw)};
        } else {
            y = V{_mm_rcp14_pd(v.raw)};
        }
        const V e = hn::NegMulAdd(v, y, one);
        // y (1 + e)(1 + e^2) has the estimate's error, 2^-14, to the fourth power.
        const V y2 = hn::MulAdd(y, e, y);
        return hn::MulAdd(y2, hn::Mul(e, e), y2);
#else
        return hn::Div(one, v);
#endif
    }
}

// Returns 1 / sqrt(v) to within a few units in the last place; NaN for 0.
template <class D, class V>
HWY_INLINE V inverse_sqrt(D d, V v) {
    using T = hn::TFromD<D>;
    const V one = hn::Set(d, T{1});
#if HWY_TARGET == HWY_AVX3
    V y;
    if constexpr (sizeof(T) == 4) {
        y = hn::ApproximateReciprocalSqrt(v);
    } else if constexpr (hn::MaxLanes(d) == 8) {
        y = V{_mm512_rsqrt14_pd(v.raw)};
    } else if constexpr (hn::MaxLanes(d) == 4) {
        y = V{_mm256_rsqrt14_pd(v.raw)};
    } else {
        y = V{_mm_rsqrt14_pd(v.raw)};
    }
    // The series of 1 / sqrt(1 - e) has the estimate's error, 2^-14, to the second or fourth power.
    const V e = hn::NegMulAdd(hn::Mul(v, y), y, one);
    V series = hn::Set(d, T(0.5));
    if constexpr (sizeof(T) == 8)
        series = hn::MulAdd(hn::MulAdd(hn::Set(d, T(0.3125)), e, hn::Set(d, T(0.375))), e, series);
    return hn::MulAdd(hn::Mul(y, e), series, y);
#else
    return hn::Div(one, hn::Sqrt(v));
#endif
}

// The lanes that count in a masked block: those after the atom's own lane, or all except that lane.
template <bool later_only, class V>
HWY_INLINE auto counted(V lane, V own) {
    if constexpr (later_only) {
        return hn::Gt(lane, own);
    } else {
        return hn::Ne(lane, own);
    }
}

// Returns the sums over the lanes of a, b, c and e, in this order.
template <class D, class V>
HWY_INLINE hn::Vec<hn::FixedTag<hn::TFromD<D>, 4>> sums_of_lanes(D d, V a, V b, V c, V e) {
    if constexpr (hn::MaxLanes(d) > 4) {
        const hn::Half<D> h;
        return sums_of_lanes(h, hn::Add(hn::LowerHalf(h, a), hn::UpperHalf(h, a)),
                             hn::Add(hn::LowerHalf(h, b), hn::UpperHalf(h, b)),
                             hn::Add(hn::LowerHalf(h, c), hn::UpperHalf(h, c)),
                             hn::Add(hn::LowerHalf(h, e), hn::UpperHalf(h, e)));
    } else {
        const V ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
        const V ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
        return hn::Add(hn::ConcatLowerLower(d, ce, ab), hn::ConcatUpperUpper(d, ce, ab));
    }
}

// Adds the sums over lanes of four rows to four consecutive reals.
template <int N, class D, class V>
HWY_INLINE void add_rows(D d, hn::TFromD<D>* to, V a, V b, V c, V e) {
    if constexpr (N == 2) {
        // A cluster consists of two blocks: the second pair of rows is one block further on.
        const V ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
        const V ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
        hn::StoreU(hn::Add(hn::LoadU(d, to), ab), d, to);
        hn::StoreU(hn::Add(hn::LoadU(d, to + 3 * N), ce), d, to + 3 * N);
    } else {
        const hn::FixedTag<hn::TFromD<D>, 4> four;
        hn::StoreU(hn::Add(hn::LoadU(four, to), sums_of_lanes(d, a, b, c, e)), four, to);
    }
}

#endif

}  // namespace minimd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
