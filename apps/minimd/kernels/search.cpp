// Which blocks come near a cluster: by their boxes, several at a time, then by their atoms.
#include "minimd/kernels/tables.h"
#include "minimd/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "minimd/kernels/search.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "minimd/kernels/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace minimd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

// How far `box` is from [lo, hi] in one dimension.
template <class D, class V>
HWY_INLINE V gap(D d, V lo, V hi, V box_lo, V box_hi) {
    return hn::Max(hn::Max(hn::Sub(lo, box_hi), hn::Sub(box_lo, hi)), hn::Zero(d));
}

// The blocks whose boxes are within `range`.
HWY_INLINE std::size_t by_boxes(const BlockBoxes& boxes, const Box& box, std::span<Window> windows,
                                float range, std::int32_t* HWY_RESTRICT found) {
    const hn::CappedTag<float, 8> d;
    const hn::Rebind<std::int32_t, decltype(d)> di;
    constexpr auto step = static_cast<std::int32_t>(hn::MaxLanes(d));
    const float range2 = range * range;
    const auto vrange2 = hn::Set(d, range2);
    const auto x_lo = hn::Set(d, box.lo[0]), x_hi = hn::Set(d, box.hi[0]), y_lo = hn::Set(d, box.lo[1]),
               y_hi = hn::Set(d, box.hi[1]), z_lo = hn::Set(d, box.lo[2]), z_hi = hn::Set(d, box.hi[2]);
    std::size_t n = 0;
    for (Window& window : windows) {
        const float bottom = box.lo[2] - window.reach, top = box.hi[2] + window.reach;
        while (window.next < window.end && boxes.hi[2][window.next] < bottom)
            ++window.next;
        const float dx = std::max({0.0F, window.x_lo - box.hi[0], box.lo[0] - window.x_hi});
        const float dy = std::max({0.0F, window.y_lo - box.hi[1], box.lo[1] - window.y_hi});
        if (dx * dx + dy * dy >= range2) continue;
        for (std::int32_t block = window.next; block < window.end && boxes.lo[2][block] <= top;
             block += step) {
            const auto dx8 =
                gap(d, hn::LoadU(d, boxes.lo[0] + block), hn::LoadU(d, boxes.hi[0] + block), x_lo, x_hi);
            const auto dy8 =
                gap(d, hn::LoadU(d, boxes.lo[1] + block), hn::LoadU(d, boxes.hi[1] + block), y_lo, y_hi);
            const auto dz8 =
                gap(d, hn::LoadU(d, boxes.lo[2] + block), hn::LoadU(d, boxes.hi[2] + block), z_lo, z_hi);
            const auto distance2 = hn::MulAdd(dz8, dz8, hn::MulAdd(dy8, dy8, hn::Mul(dx8, dx8)));
            const auto number = hn::Iota(di, block);
            const auto near = hn::And(hn::RebindMask(di, hn::Lt(distance2, vrange2)),
                                      hn::Lt(number, hn::Set(di, window.end)));
            // Compressed in a register: straight to memory takes over a hundred cycles on some processors.
            hn::StoreU(hn::Compress(number, near), di, found + n);
            n += hn::CountTrue(di, near);
        }
    }
    return n;
}

// Of the `count` blocks at `found`, keeps those that have an atom within `range` of one of the cluster's.
template <typename Real, int N>
HWY_INLINE std::size_t by_atoms(const Real* HWY_RESTRICT x, std::int32_t cluster, Real range,
                                std::int32_t* found, std::size_t count) {
    const hn::FixedTag<Real, N> d;
    using V = hn::Vec<decltype(d)>;
    const Real* xi = x + slot_address<N>(cluster * cluster_size);
    const auto at = [&](int r, int dim) HWY_ATTR {
        return hn::Set(d, N == 2 ? xi[r / 2 * 3 * N + dim * N + r % 2] : xi[dim * N + r]);
    };
    const V x0 = at(0, 0), x1 = at(1, 0), x2 = at(2, 0), x3 = at(3, 0);
    const V y0 = at(0, 1), y1 = at(1, 1), y2 = at(2, 1), y3 = at(3, 1);
    const V z0 = at(0, 2), z1 = at(1, 2), z2 = at(2, 2), z3 = at(3, 2);
    const V range2 = hn::Set(d, range * range);
    std::size_t n = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::int32_t block = found[i];
        const Real* xj = x + block_address<N>(block);
        const V xb = hn::Load(d, xj), yb = hn::Load(d, xj + N), zb = hn::Load(d, xj + 2 * N);
        const auto distance2 = [&](V xr, V yr, V zr) HWY_ATTR {
            const V dx = hn::Sub(xr, xb), dy = hn::Sub(yr, yb), dz = hn::Sub(zr, zb);
            return hn::MulAdd(dz, dz, hn::MulAdd(dy, dy, hn::Mul(dx, dx)));
        };
        const V nearest = hn::Min(hn::Min(distance2(x0, y0, z0), distance2(x1, y1, z1)),
                                  hn::Min(distance2(x2, y2, z2), distance2(x3, y3, z3)));
        found[n] = block;
        n += hn::AllFalse(d, hn::Lt(nearest, range2)) ? 0 : 1;
    }
    return n;
}

template <typename Real, int N>
std::size_t search(const Real* x, const BlockBoxes& boxes, const Box& box, std::int32_t cluster,
                   std::span<Window> windows, Real range, std::int32_t* found) {
    const std::size_t count = by_boxes(boxes, box, windows, static_cast<float>(range), found);
    return by_atoms<Real, N>(x, cluster, range, found, count);
}

template <typename Real>
SearchKernel<Real> choose(int lanes) {
    return for_lanes<Real, SearchKernel<Real>>(lanes, [](auto n) { return &search<Real, n()>; });
}
#else
template <typename Real>
SearchKernel<Real> choose(int) {
    return nullptr;
}
#endif

SearchKernel<double> choose_search_double(int lanes) {
    return choose<double>(lanes);
}
SearchKernel<float> choose_search_float(int lanes) {
    return choose<float>(lanes);
}

}  // namespace minimd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace minimd {

HWY_EXPORT(choose_search_double);
HWY_EXPORT(choose_search_float);

template <>
SearchKernel<double> search_kernel<double>(int lanes) {
    return HWY_DYNAMIC_DISPATCH(choose_search_double)(lanes);
}
template <>
SearchKernel<float> search_kernel<float>(int lanes) {
    return HWY_DYNAMIC_DISPATCH(choose_search_float)(lanes);
}

}  // namespace minimd
#endif
