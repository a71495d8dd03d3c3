// Finds the blocks that come near a cluster: first by their boxes, several at a time, then by their atoms.
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

// The distance between `box` and [lo, hi] in one dimension.
template <class D, class V>
HWY_INLINE V gap(D d, V lo, V hi, V box_lo, V box_hi) {
    return hn::Max(hn::Max(hn::Sub(lo, box_hi), hn::Sub(box_lo, hi)), hn::Zero(d));
}

// Puts the numbers of the windows whose columns are within range into windows.near. It has no branches that
// depend on where columns lie: every other one would be mispredicted.
template <class D>
HWY_INLINE std::size_t by_columns(D d, const Box& box, Windows& windows, float range2) {
    const hn::Rebind<std::int32_t, D> di;
    constexpr std::size_t step = hn::MaxLanes(d);
    const auto x_lo = hn::Set(d, box.lo[0]), x_hi = hn::Set(d, box.hi[0]), y_lo = hn::Set(d, box.lo[1]),
               y_hi = hn::Set(d, box.hi[1]);
    // Iota(di, number) would be slow: compilers may build it lane by lane, in memory.
    auto number = hn::Iota(di, 0);
    const auto end = hn::Set(di, static_cast<std::int32_t>(windows.count));
    std::size_t n = 0;
    for (std::size_t window = 0; window < windows.count; window += step) {
        const auto dx =
            gap(d, x_lo, x_hi, hn::Load(d, &windows.x_lo[window]), hn::Load(d, &windows.x_hi[window]));
        const auto dy =
            gap(d, y_lo, y_hi, hn::Load(d, &windows.y_lo[window]), hn::Load(d, &windows.y_hi[window]));
        const auto distance2 = hn::MulAdd(dx, dx, hn::Mul(dy, dy));
        const auto near =
            hn::And(hn::RebindMask(di, hn::Lt(distance2, hn::Set(d, range2))), hn::Lt(number, end));
        hn::StoreU(hn::Compress(number, near), di, &windows.near[n]);
        n += hn::CountTrue(di, near);
        number = hn::Add(number, hn::Set(di, static_cast<std::int32_t>(step)));
    }
    return n;
}

// Finds the blocks whose boxes are within `range`.
HWY_INLINE std::size_t by_boxes(const BlockBoxes& boxes, const Box& box, Windows& windows, float range,
                                std::int32_t* HWY_RESTRICT found) {
    const hn::CappedTag<float, 8> d;
    const hn::Rebind<std::int32_t, decltype(d)> di;
    constexpr auto step = static_cast<std::int32_t>(hn::MaxLanes(d));
    const auto counting = hn::Iota(di, 0);
    const float range2 = range * range;
    const std::array<const float*, 3> lo = boxes.lo, hi = boxes.hi;
    const std::size_t columns = by_columns(d, box, windows, range2);
    const auto vrange2 = hn::Set(d, range2);
    const auto x_lo = hn::Set(d, box.lo[0]), x_hi = hn::Set(d, box.hi[0]), y_lo = hn::Set(d, box.lo[1]),
               y_hi = hn::Set(d, box.hi[1]), z_lo = hn::Set(d, box.lo[2]), z_hi = hn::Set(d, box.hi[2]);
    std::size_t n = 0;
    for (std::size_t i = 0; i < columns; ++i) {
        const auto window = static_cast<std::size_t>(windows.near[i]);
        const float reach = windows.reach[window], top = box.hi[2] + reach;
        const std::int32_t end = windows.end[window];
        std::int32_t block = windows.next[window];
        // A column's blocks are in order, so the blocks below are its first ones. If more of them are below,
        // the next cluster skips them.
        const auto below =
            hn::And(hn::RebindMask(di, hn::Lt(hn::LoadU(d, hi[2] + block), hn::Set(d, box.lo[2] - reach))),
                    hn::Lt(counting, hn::Set(di, end - block)));
        block += static_cast<std::int32_t>(hn::CountTrue(di, below));
        windows.next[window] = block;
        for (; block < end && lo[2][block] <= top; block += step) {
            const auto dx8 = gap(d, hn::LoadU(d, lo[0] + block), hn::LoadU(d, hi[0] + block), x_lo, x_hi);
            const auto dy8 = gap(d, hn::LoadU(d, lo[1] + block), hn::LoadU(d, hi[1] + block), y_lo, y_hi);
            const auto dz8 = gap(d, hn::LoadU(d, lo[2] + block), hn::LoadU(d, hi[2] + block), z_lo, z_hi);
            const auto distance2 = hn::MulAdd(dz8, dz8, hn::MulAdd(dy8, dy8, hn::Mul(dx8, dx8)));
            const auto number = hn::Add(counting, hn::Set(di, block));
            const auto near =
                hn::And(hn::RebindMask(di, hn::Lt(distance2, vrange2)), hn::Lt(number, hn::Set(di, end)));
            // The result is compressed in a register: compressing straight to memory takes over a hundred
            // cycles on some processors.
            hn::StoreU(hn::Compress(number, near), di, found + n);
            n += hn::CountTrue(di, near);
        }
    }
    return n;
}

// Distances between the four atoms of a cluster and the lanes of a vector.
template <class D>
class Nearest {
    using V = hn::Vec<D>;

  public:
    template <int N>
    static HWY_INLINE Nearest of(const float* HWY_RESTRICT x, std::int32_t cluster, float range) {
        const float* xi = x + slot_address<N>(cluster * cluster_size);
        const auto at = [&](int r, int dim) HWY_ATTR {
            return hn::Set(D(), N == 2 ? xi[r / 2 * 3 * N + dim * N + r % 2] : xi[dim * N + r]);
        };
        return {at(0, 0),
                at(1, 0),
                at(2, 0),
                at(3, 0),
                at(0, 1),
                at(1, 1),
                at(2, 1),
                at(3, 1),
                at(0, 2),
                at(1, 2),
                at(2, 2),
                at(3, 2),
                hn::Set(D(), range * range)};
    }

    // Returns the lanes that are within range of one of the atoms.
    HWY_INLINE hn::Mask<D> near(V x, V y, V z) const {
        const auto distance2 = [&](V xr, V yr, V zr) HWY_ATTR {
            const V dx = hn::Sub(xr, x), dy = hn::Sub(yr, y), dz = hn::Sub(zr, z);
            return hn::MulAdd(dz, dz, hn::MulAdd(dy, dy, hn::Mul(dx, dx)));
        };
        return hn::Lt(hn::Min(hn::Min(distance2(x0, y0, z0), distance2(x1, y1, z1)),
                              hn::Min(distance2(x2, y2, z2), distance2(x3, y3, z3))),
                      range2);
    }

    V x0, x1, x2, x3, y0, y1, y2, y3, z0, z1, z2, z3, range2;
};

// Of the `count` blocks at `found`, keeps those that have an atom within `range` of one of the cluster's.
template <int N>
HWY_INLINE std::size_t by_atoms(const float* HWY_RESTRICT x, std::int32_t cluster, float range,
                                std::int32_t* found, std::size_t count) {
    const hn::FixedTag<float, N> d;
    const auto nearest = Nearest<decltype(d)>::template of<N>(x, cluster, range);
    std::size_t n = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::int32_t block = found[i];
        const float* xj = x + block_address<N>(block);
        const auto near =
            nearest.near(hn::LoadU(d, xj), hn::LoadU(d, xj + N), hn::LoadU(d, xj + std::ptrdiff_t{2} * N));
        found[n] = block;
        n += hn::AllFalse(d, near) ? 0 : 1;
    }
    return n;
}

// The same, two blocks at a time. For vectors that have room for two blocks.
template <int N>
HWY_INLINE std::size_t by_atoms_in_pairs(const float* HWY_RESTRICT x, std::int32_t cluster, float range,
                                         std::int32_t* found, std::size_t count) {
    const hn::FixedTag<float, std::size_t{2} * N> d;
    const hn::FixedTag<float, N> half;
    const auto nearest = Nearest<decltype(d)>::template of<N>(x, cluster, range);
    // A last block without a partner is paired with itself, and its copy does not count: there is room for
    // it.
    if (count > 0) found[count] = found[count - 1];
    std::size_t n = 0;
    for (std::size_t i = 0; i < count; i += 2) {
        const std::int32_t first = found[i], second = found[i + 1];
        const float *xa = x + block_address<N>(first), *xb = x + block_address<N>(second);
        const auto both = [&](std::ptrdiff_t dim) HWY_ATTR {
            return hn::Combine(d, hn::LoadU(half, xb + dim * N), hn::LoadU(half, xa + dim * N));
        };
        std::uint8_t bits[8];
        hn::StoreMaskBits(d, nearest.near(both(0), both(1), both(2)), bits);
        const unsigned near = N > 4 ? bits[0] | unsigned{bits[1]} << 8 : bits[0];
        constexpr unsigned of_first = (1U << N) - 1;
        found[n] = first;
        n += (near & of_first) != 0 ? 1 : 0;
        found[n] = second;
        n += (near >> N & of_first) != 0 ? 1 : 0;
    }
    // If the last block was kept, its copy follows it.
    return count % 2 != 0 && n >= 2 && found[n - 1] == found[n - 2] ? n - 1 : n;
}

template <int N, bool in_pairs>
std::size_t search(const BlockBoxes& boxes, const Box& box, std::int32_t cluster, Windows& windows,
                   float range, std::int32_t* found) {
    const std::size_t count = by_boxes(boxes, box, windows, range, found);
    if constexpr (in_pairs) {
        return by_atoms_in_pairs<N>(boxes.x, cluster, range, found, count);
    } else {
        return by_atoms<N>(boxes.x, cluster, range, found, count);
    }
}

template <typename Real>
SearchKernel choose(int lanes) {
    return for_lanes<Real, SearchKernel>(lanes, [](auto n) {
        constexpr bool in_pairs = 2 * std::size_t{n()} * sizeof(float) <= HWY_MAX_BYTES;
        return &search<n(), in_pairs>;
    });
}
#else
template <typename Real>
SearchKernel choose(int) {
    return nullptr;
}
#endif

SearchKernel choose_search_double(int lanes) {
    return choose<double>(lanes);
}
SearchKernel choose_search_float(int lanes) {
    return choose<float>(lanes);
}

}  // namespace minimd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace minimd {

HWY_EXPORT(choose_search_double);
HWY_EXPORT(choose_search_float);

template <>
SearchKernel search_kernel<double>(int lanes) {
    return HWY_DYNAMIC_DISPATCH(choose_search_double)(lanes);
}
template <>
SearchKernel search_kernel<float>(int lanes) {
    return HWY_DYNAMIC_DISPATCH(choose_search_float)(lanes);
}

}  // namespace minimd
#endif
