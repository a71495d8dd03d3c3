// Rows of spline coefficients, one for each lane. Included once for each instruction set; see
// hwy/foreach_target.h.
#if defined(MINIMD_SPLINES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MINIMD_SPLINES_INL_H
#undef MINIMD_SPLINES_INL_H
#else
#define MINIMD_SPLINES_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "minimd/kernels/eam.h"

HWY_BEFORE_NAMESPACE();
namespace minimd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

// D is 2 or 4 doubles, or 4 or 8 floats.
template <class D>
class SplineRows {
    using T = hn::TFromD<D>;
    using V = hn::Vec<D>;
    static constexpr std::size_t lanes = hn::MaxLanes(D());

  public:
    struct Point {
        V value, slope;  // the slope is per interval, not per distance
    };

    // `at` has the distances in units of the spacing. Only rows of the table are read, whatever the distances
    // are.
    HWY_INLINE SplineRows(const EamTable<T>& table, V at) : rows_(table.rows) {
        const D d;
        const hn::Rebind<std::int32_t, D> di;
        const auto within = [&](auto row) HWY_ATTR {
            return hn::Max(hn::Min(row, hn::Set(di, table.last_row)), hn::Zero(di));
        };
        V begin;
        if constexpr (sizeof(T) == 8) {
            const auto row = within(hn::DemoteTo(di, at));
            hn::Store(row, di, row_);
            begin = hn::PromoteTo(d, row);
        } else {
            const auto row = within(hn::ConvertTo(di, at));
            hn::Store(row, di, row_);
            begin = hn::ConvertTo(d, row);
        }
        p_ = hn::Min(hn::Sub(at, begin), hn::Set(d, T{1}));
    }

    // Evaluates the polynomial whose coefficients begin at `first` in each row.
    HWY_INLINE Point at(std::size_t first) const {
        V c3, c2, c1, c0;
        load(first, c3, c2, c1, c0);
        const V quadratic = hn::MulAdd(c3, p_, c2);
        const V linear = hn::MulAdd(quadratic, p_, c1);
        return {hn::MulAdd(linear, p_, c0), hn::MulAdd(hn::MulAdd(c3, p_, quadratic), p_, linear)};
    }

  private:
    HWY_INLINE const T* row(std::size_t lane, std::size_t first) const {
        return rows_ + static_cast<std::size_t>(row_[lane]) * EamTable<T>::row_size + first;
    }

    HWY_INLINE void load(std::size_t first, V& c3, V& c2, V& c1, V& c0) const {
        const D d;
        if constexpr (sizeof(T) == 8 && lanes == 2) {
            const V a = hn::Load(d, row(0, first)), b = hn::Load(d, row(1, first));
            const V a2 = hn::Load(d, row(0, first) + 2), b2 = hn::Load(d, row(1, first) + 2);
            c3 = hn::InterleaveLower(d, a, b);
            c2 = hn::InterleaveUpper(d, a, b);
            c1 = hn::InterleaveLower(d, a2, b2);
            c0 = hn::InterleaveUpper(d, a2, b2);
        } else {
            const V a = quarter(0, first), b = quarter(1, first), e = quarter(2, first),
                    g = quarter(3, first);
            const V ab_low = hn::InterleaveLower(d, a, b), ab_high = hn::InterleaveUpper(d, a, b);
            const V eg_low = hn::InterleaveLower(d, e, g), eg_high = hn::InterleaveUpper(d, e, g);
            if constexpr (sizeof(T) == 8) {
                c3 = hn::ConcatLowerLower(d, eg_low, ab_low);
                c2 = hn::ConcatLowerLower(d, eg_high, ab_high);
                c1 = hn::ConcatUpperUpper(d, eg_low, ab_low);
                c0 = hn::ConcatUpperUpper(d, eg_high, ab_high);
            } else {
                const hn::RepartitionToWide<D> wide;
                const auto low = [&](V v, V w) HWY_ATTR {
                    return hn::BitCast(d,
                                       hn::InterleaveLower(wide, hn::BitCast(wide, v), hn::BitCast(wide, w)));
                };
                const auto high = [&](V v, V w) HWY_ATTR {
                    return hn::BitCast(d,
                                       hn::InterleaveUpper(wide, hn::BitCast(wide, v), hn::BitCast(wide, w)));
                };
                c3 = low(ab_low, eg_low);
                c2 = high(ab_low, eg_low);
                c1 = low(ab_high, eg_high);
                c0 = high(ab_high, eg_high);
            }
        }
    }

    // Loads four coefficients of lane `lane`. If there are 8 lanes, those of lane + 4 follow.
    HWY_INLINE V quarter(std::size_t lane, std::size_t first) const {
        const D d;
        if constexpr (lanes == 8) {
            const hn::Half<D> half;
            return hn::Combine(d, hn::Load(half, row(lane + 4, first)), hn::Load(half, row(lane, first)));
        } else {
            return hn::Load(d, row(lane, first));
        }
    }

    const T* rows_;
    HWY_ALIGN std::int32_t row_[lanes < 4 ? 4 : lanes];
    V p_;
};

#endif

}  // namespace minimd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
