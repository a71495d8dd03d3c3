#include "engine/reductions/reduce_vector.h"

// Highway compiles this file once for each instruction set that is worth it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/reductions/reduce_vector.cpp"
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace offpath::engine::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using schedule::DataType;
using schedule::Reduction;

template <class D>
using Lanes = hn::Vec<D>;

// dst = combine(dst, src), a vector at a time. The rest goes through a vector that is padded with zeros.
template <class T, class Combine>
HWY_INLINE void each(const std::byte* src_bytes, std::byte* dst_bytes, std::size_t bytes, Combine combine) {
    const hn::ScalableTag<T> d;
    const auto* src = reinterpret_cast<const T*>(src_bytes);
    auto* dst = reinterpret_cast<T*>(dst_bytes);
    const std::size_t count = bytes / sizeof(T), step = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + step <= count; i += step)
        hn::StoreU(combine(d, hn::LoadU(d, dst + i), hn::LoadU(d, src + i)), d, dst + i);
    if (i == count) return;
    HWY_ALIGN T a[hn::MaxLanes(d)] = {}, b[hn::MaxLanes(d)] = {};
    std::memcpy(a, dst + i, (count - i) * sizeof(T));
    std::memcpy(b, src + i, (count - i) * sizeof(T));
    hn::Store(combine(d, hn::Load(d, a), hn::Load(d, b)), d, a);
    std::memcpy(dst + i, a, (count - i) * sizeof(T));
}

struct Sum {
    template <class D, class V = Lanes<D>>
    HWY_INLINE V operator()(D, V a, V b) const {
        return hn::Add(a, b);
    }
};

struct Product {
    template <class D, class V = Lanes<D>>
    HWY_INLINE V operator()(D d, V a, V b) const {
        using T = hn::TFromD<D>;
        if constexpr (HWY_TARGET == HWY_SCALAR || sizeof(T) == 2 || sizeof(T) == 4 || hwy::IsFloat<T>()) {
            return hn::Mul(a, b);
        } else if constexpr (sizeof(T) == 1) {
            const hn::Repartition<std::uint16_t, D> wide;
            const auto a2 = hn::BitCast(wide, a), b2 = hn::BitCast(wide, b);
            const auto even = hn::And(hn::Mul(a2, b2), hn::Set(wide, 0xFF));
            const auto odd = hn::Mul(hn::ShiftRight<8>(a2), hn::ShiftRight<8>(b2));
            return hn::BitCast(d, hn::Or(even, hn::ShiftLeft<8>(odd)));
        } else {
            const hn::Repartition<std::uint32_t, D> half;
            const auto a2 = hn::BitCast(half, a), b2 = hn::BitCast(half, b);
            const auto swapped = hn::Or(hn::ShiftLeft<32>(b), hn::ShiftRight<32>(b));
            const auto cross = hn::BitCast(d, hn::Mul(a2, hn::BitCast(half, swapped)));
            const auto high = hn::Add(hn::ShiftLeft<32>(cross), hn::And(cross, hn::Set(d, ~T{} << 32)));
            return hn::Add(hn::MulEven(a2, b2), high);
        }
    }
};

// Gives `a < b ? a : b`, also if one of them is not a number.
struct Minimum {
    template <class D, class V = Lanes<D>>
    HWY_INLINE V operator()(D, V a, V b) const {
        return hn::IfThenElse(hn::Lt(a, b), a, b);
    }
};

struct Maximum {
    template <class D, class V = Lanes<D>>
    HWY_INLINE V operator()(D, V a, V b) const {
        return hn::IfThenElse(hn::Gt(a, b), a, b);
    }
};

struct BitAnd {
    template <class D, class V = Lanes<D>>
    HWY_INLINE V operator()(D, V a, V b) const {
        return hn::And(a, b);
    }
};

struct BitOr {
    template <class D, class V = Lanes<D>>
    HWY_INLINE V operator()(D, V a, V b) const {
        return hn::Or(a, b);
    }
};

struct BitXor {
    template <class D, class V = Lanes<D>>
    HWY_INLINE V operator()(D, V a, V b) const {
        return hn::Xor(a, b);
    }
};

// 1 where the element is not 0, and 0 elsewhere.
template <class D, class V = Lanes<D>>
HWY_INLINE V truth(D d, V v) {
    return hn::IfThenZeroElse(hn::Eq(v, hn::Zero(d)), hn::Set(d, 1));
}

template <class Bits>
struct Logical {
    template <class D, class V = Lanes<D>>
    HWY_INLINE V operator()(D d, V a, V b) const {
        return Bits()(d, truth(d, a), truth(d, b));
    }
};

// The same for elements of two lanes. combine(d, a0, a1, b0, b1) gets the lanes separately and leaves its
// results in a0 and a1.
template <class T, class Combine>
HWY_INLINE void each_pair(const std::byte* src_bytes, std::byte* dst_bytes, std::size_t bytes,
                          Combine combine) {
    const hn::ScalableTag<T> d;
    const auto step = [&](const T* src, T* dst) HWY_ATTR {
        auto a0 = hn::Zero(d), a1 = a0, b0 = a0, b1 = a0;
        hn::LoadInterleaved2(d, dst, a0, a1);
        hn::LoadInterleaved2(d, src, b0, b1);
        combine(d, a0, a1, b0, b1);
        hn::StoreInterleaved2(a0, a1, d, dst);
    };
    const auto* src = reinterpret_cast<const T*>(src_bytes);
    auto* dst = reinterpret_cast<T*>(dst_bytes);
    const std::size_t count = bytes / sizeof(T), lanes = 2 * hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        step(src + i, dst + i);
    if (i == count) return;
    HWY_ALIGN T a[2 * hn::MaxLanes(d)] = {}, b[2 * hn::MaxLanes(d)] = {};
    std::memcpy(a, dst + i, (count - i) * sizeof(T));
    std::memcpy(b, src + i, (count - i) * sizeof(T));
    step(b, a);
    std::memcpy(dst + i, a, (count - i) * sizeof(T));
}

// The four products are rounded before they are added.
struct ComplexProduct {
    template <class D, class V = Lanes<D>>
    HWY_INLINE void operator()(D, V& ar, V& ai, V br, V bi) const {
        const V re = hn::Sub(hn::Mul(ar, br), hn::Mul(ai, bi));
        ai = hn::Add(hn::Mul(ar, bi), hn::Mul(ai, br));
        ar = re;
    }
};

// A pair of a value and an index. In an integer lane, only the lowest bits are the value or the index; a
// structure's padding is above them. I: the type as which indices are compared.
template <int ValueBits, class I, int IndexBits, bool Least>
struct Locate {
    template <int Bits, class D, class V = Lanes<D>>
    static HWY_INLINE V without_padding(D, V v) {
        constexpr int lane_bits = static_cast<int>(8 * sizeof(hn::TFromD<D>));
        if constexpr (Bits < lane_bits)
            return hn::ShiftLeft<lane_bits - Bits>(v);
        else
            return v;
    }
    template <class D, class V = Lanes<D>>
    HWY_INLINE void operator()(D d, V& a, V& ai, V b, V bi) const {
        const hn::Rebind<I, D> di;
        const V av = without_padding<ValueBits>(d, a), bv = without_padding<ValueBits>(d, b);
        const auto better = Least ? hn::Lt(bv, av) : hn::Gt(bv, av);
        const auto lower = hn::Lt(without_padding<IndexBits>(di, hn::BitCast(di, bi)),
                                  without_padding<IndexBits>(di, hn::BitCast(di, ai)));
        const auto tie = hn::And(hn::Eq(av, bv), hn::RebindMask(d, lower));
        a = hn::IfThenElse(better, b, a);
        ai = hn::IfThenElse(hn::Or(better, tie), bi, ai);
    }
};

struct Operands {
    const std::byte* src;
    std::byte* dst;
    std::size_t bytes;
    template <class T, class Combine>
    Status run() const {
        each<T>(src, dst, bytes, Combine());
        return Status::ok;
    }
    template <class T, class Combine>
    Status run_pairs() const {
        each_pair<T>(src, dst, bytes, Combine());
        return Status::ok;
    }
    template <class T, int ValueBits, class I, int IndexBits>
    Status locate(bool least) const {
        return least ? run_pairs<T, Locate<ValueBits, I, IndexBits, true>>()
                     : run_pairs<T, Locate<ValueBits, I, IndexBits, false>>();
    }
};

// U: the unsigned type of the same size. Sums and products wrap alike for both.
template <class T, class U>
Status reduce_integers(Reduction reduction, const Operands& on) {
    switch (reduction) {
        case Reduction::sum:
            return on.run<U, Sum>();
        case Reduction::product:
            return on.run<U, Product>();
        case Reduction::minimum:
            return on.run<T, Minimum>();
        case Reduction::maximum:
            return on.run<T, Maximum>();
        case Reduction::band:
            return on.run<std::uint8_t, BitAnd>();
        case Reduction::bor:
            return on.run<std::uint8_t, BitOr>();
        case Reduction::bxor:
            return on.run<std::uint8_t, BitXor>();
        case Reduction::land:
            return on.run<U, Logical<BitAnd>>();
        case Reduction::lor:
            return on.run<U, Logical<BitOr>>();
        case Reduction::lxor:
            return on.run<U, Logical<BitXor>>();
        default:
            return Status::unsupported;
    }
}

template <class T>
Status reduce_reals(Reduction reduction, const Operands& on) {
    switch (reduction) {
        case Reduction::sum:
            return on.run<T, Sum>();
        case Reduction::product:
            return on.run<T, Product>();
        case Reduction::minimum:
            return on.run<T, Minimum>();
        case Reduction::maximum:
            return on.run<T, Maximum>();
        default:
            return Status::unsupported;
    }
}

Status reduce_here(DataType type, Reduction reduction, const std::byte* src, std::byte* dst,
                   std::size_t bytes) {
    const Operands on{src, dst, bytes};
    const bool least = reduction == Reduction::minloc;
    switch (type) {
        case DataType::int8:
            return reduce_integers<std::int8_t, std::uint8_t>(reduction, on);
        case DataType::uint8:
        case DataType::bool8:
            return reduce_integers<std::uint8_t, std::uint8_t>(reduction, on);
        case DataType::int16:
            return reduce_integers<std::int16_t, std::uint16_t>(reduction, on);
        case DataType::uint16:
            return reduce_integers<std::uint16_t, std::uint16_t>(reduction, on);
        case DataType::int32:
        case DataType::logical32:
            return reduce_integers<std::int32_t, std::uint32_t>(reduction, on);
        case DataType::uint32:
            return reduce_integers<std::uint32_t, std::uint32_t>(reduction, on);
        case DataType::int64:
            return reduce_integers<std::int64_t, std::uint64_t>(reduction, on);
        case DataType::uint64:
            return reduce_integers<std::uint64_t, std::uint64_t>(reduction, on);
        case DataType::float32:
            return reduce_reals<float>(reduction, on);
        case DataType::float64:
            return reduce_reals<double>(reduction, on);
        case DataType::complex64:
            return reduction == Reduction::sum ? on.run<float, Sum>() : on.run_pairs<float, ComplexProduct>();
        case DataType::complex128:
            return reduction == Reduction::sum ? on.run<double, Sum>()
                                               : on.run_pairs<double, ComplexProduct>();
        case DataType::int32_int32:
            return on.locate<std::int32_t, 32, std::int32_t, 32>(least);
        case DataType::int16_int32:
            return on.locate<std::int32_t, 16, std::int32_t, 32>(least);
        case DataType::int64_int32:
            return on.locate<std::int64_t, 64, std::int64_t, 32>(least);
        case DataType::float32_int32:
            return on.locate<float, 32, std::int32_t, 32>(least);
        case DataType::float64_int32:
            return on.locate<double, 64, std::int64_t, 32>(least);
        case DataType::float32_float32:
            return on.locate<float, 32, float, 32>(least);
        case DataType::float64_float64:
            return on.locate<double, 64, double, 64>(least);
        default:
            return Status::unsupported;
    }
}

}  // namespace offpath::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace offpath::engine {

HWY_EXPORT(reduce_here);

Status reduce_vector(schedule::DataType type, schedule::Reduction reduction, const std::byte* src,
                     std::byte* dst, std::size_t bytes) {
    if (!schedule::defined(type, reduction)) return Status::unsupported;
    return HWY_DYNAMIC_DISPATCH(reduce_here)(type, reduction, src, dst, bytes);
}

}  // namespace offpath::engine
#endif
