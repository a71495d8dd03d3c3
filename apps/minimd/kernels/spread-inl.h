// Spreads packed numbers to their lanes. Included once for each instruction set; see hwy/foreach_target.h.
#if defined(MINIMD_SPREAD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MINIMD_SPREAD_INL_H
#undef MINIMD_SPREAD_INL_H
#else
#define MINIMD_SPREAD_INL_H
#endif

#include <hwy/highway.h>

#include <array>
#include <bit>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace minimd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

// Tells, for each set of up to 8 lanes, which of the consecutive numbers each lane gets.
template <typename Index, int N>
struct SpreadTable {
    static constexpr std::size_t sets = std::size_t{1} << N;
    alignas(64) Index rows[sets][N];

    constexpr SpreadTable() : rows() {
        for (std::size_t set = 0; set < sets; ++set) {
            Index next = 0;
            for (std::size_t lane = 0; lane < N; ++lane)
                rows[set][lane] = (set >> lane & 1) != 0 ? next++ : Index{0};
        }
    }
};

template <int N>
HWY_INLINE unsigned set_of(const std::uint8_t* lanes) {
    return N > 8 ? lanes[0] | unsigned{lanes[1]} << 8 : lanes[0];
}

// The lanes in `set` get consecutive numbers from `from` on; the other lanes get 0. Reads N numbers.
template <int N, class D>
HWY_INLINE hn::Vec<D> spread_set(D d, const hn::TFromD<D>* from, unsigned set) {
    using V = hn::Vec<D>;
    const V packed = hn::LoadU(d, from);
#if HWY_TARGET == HWY_AVX3
    if constexpr (sizeof(hn::TFromD<D>) == 8) {
        if constexpr (N == 8) return V{_mm512_maskz_expand_pd(static_cast<__mmask8>(set), packed.raw)};
        if constexpr (N == 4) return V{_mm256_maskz_expand_pd(static_cast<__mmask8>(set), packed.raw)};
        if constexpr (N == 2) return V{_mm_maskz_expand_pd(static_cast<__mmask8>(set), packed.raw)};
    } else {
        if constexpr (N == 16) return V{_mm512_maskz_expand_ps(static_cast<__mmask16>(set), packed.raw)};
        if constexpr (N == 8) return V{_mm256_maskz_expand_ps(static_cast<__mmask8>(set), packed.raw)};
        if constexpr (N == 4) return V{_mm_maskz_expand_ps(static_cast<__mmask8>(set), packed.raw)};
    }
#else
    using Index = hwy::MakeSigned<hn::TFromD<D>>;
    static constexpr SpreadTable<Index, N> table;
    const hn::Rebind<Index, D> di;
    const std::uint8_t bits[8] = {static_cast<std::uint8_t>(set)};
    const auto index = hn::IndicesFromVec(d, hn::Load(di, table.rows[set]));
    return hn::IfThenElseZero(hn::LoadMaskBits(d, bits), hn::TableLookupLanes(packed, index));
#endif
}

// The same, for the set at `lanes`. Advances `from` past the numbers used.
template <int N, class D>
HWY_INLINE hn::Vec<D> spread(D d, const hn::TFromD<D>*& from, const std::uint8_t* lanes) {
    const unsigned set = set_of<N>(lanes);
    const auto lanes_filled = spread_set<N>(d, from, set);
    from += std::popcount(set);
    return lanes_filled;
}

#endif

}  // namespace minimd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
