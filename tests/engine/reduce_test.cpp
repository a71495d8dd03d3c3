// Every reduction of every type against plain loops in C, with each instruction set that this machine has.
#include "engine/reductions/reduce.h"

#include <hwy/targets.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace offpath::testing {
namespace {

using schedule::DataType;
using schedule::Reduction;

template <class T>
struct Complex {
    T re, im;
};
template <class V, class I>
struct Pair {
    V value;
    I index;
};

// Limits, signed values and NaNs are as likely as any other value.
template <class T>
T draw(std::mt19937_64& random) {
    using Limits = std::numeric_limits<T>;
    const auto any = static_cast<T>(static_cast<std::int64_t>(random() % 200) - 100);
    switch (random() % 12) {
        case 0:
            return T{0};
        case 1:
            return static_cast<T>(-T{0});
        case 2:
            return Limits::max();
        case 3:
            return Limits::lowest();
        case 4:
            return Limits::has_infinity ? Limits::infinity() : T{1};
        case 5:
            return Limits::has_quiet_NaN ? Limits::quiet_NaN() : T{1};
        case 6:
            return std::is_integral_v<T> ? static_cast<T>(random()) : any / static_cast<T>(7);
        default:
            return any;
    }
}

template <class T>
bool same(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
        return (a == b && std::signbit(a) == std::signbit(b)) || (std::isnan(a) && std::isnan(b));
    else
        return a == b;
}

// The reference: a is the destination.
template <class T>
T apply(Reduction reduction, T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        const auto ua = static_cast<std::uint64_t>(static_cast<U>(a)),
                   ub = static_cast<std::uint64_t>(static_cast<U>(b));
        switch (reduction) {
            case Reduction::sum:
                return static_cast<T>(ua + ub);
            case Reduction::product:
                return static_cast<T>(ua * ub);
            case Reduction::band:
                return static_cast<T>(ua & ub);
            case Reduction::bor:
                return static_cast<T>(ua | ub);
            case Reduction::bxor:
                return static_cast<T>(ua ^ ub);
            case Reduction::land:
                return a && b;
            case Reduction::lor:
                return a || b;
            case Reduction::lxor:
                return !a != !b;
            default:
                break;
        }
    } else {
        if (reduction == Reduction::sum) return a + b;
        if (reduction == Reduction::product) return a * b;
    }
    if (reduction == Reduction::minimum) return a < b ? a : b;
    if (reduction == Reduction::maximum) return a > b ? a : b;
    throw std::logic_error("no reference for this reduction");
}

template <class T>
Complex<T> apply(Reduction reduction, Complex<T> a, Complex<T> b) {
    if (reduction == Reduction::sum) return {a.re + b.re, a.im + b.im};
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

template <class V, class I>
Pair<V, I> apply(Reduction reduction, Pair<V, I> a, Pair<V, I> b) {
    const bool better = reduction == Reduction::minloc ? b.value < a.value : b.value > a.value;
    if (better) return b;
    if (a.value == b.value && b.index < a.index) return {a.value, b.index};
    return a;
}

template <class T>
void fill(T& element, std::mt19937_64& random) {
    element = draw<T>(random);
}
template <class T>
void fill(Complex<T>& element, std::mt19937_64& random) {
    element = {draw<T>(random), draw<T>(random)};
}
template <class V, class I>
void fill(Pair<V, I>& element, std::mt19937_64& random) {
    for (std::size_t i = 0; i < sizeof element; ++i)  // padding holds anything
        reinterpret_cast<unsigned char*>(&element)[i] = static_cast<unsigned char>(random());
    element.value = random() % 2 == 0 ? draw<V>(random) : static_cast<V>(random() % 3);
    element.index = random() % 2 == 0 ? draw<I>(random) : static_cast<I>(random() % 3);
}

template <class T>
bool equal(const T& a, const T& b) {
    return same(a, b);
}
template <class T>
bool equal(const Complex<T>& a, const Complex<T>& b) {
    return same(a.re, b.re) && same(a.im, b.im);
}
template <class V, class I>
bool equal(const Pair<V, I>& a, const Pair<V, I>& b) {
    return same(a.value, b.value) && same(a.index, b.index);
}

template <class T>
void check_type(DataType type) {
    ASSERT_EQ(schedule::size_of(type), sizeof(T)) << "type " << static_cast<int>(type);
    std::mt19937_64 random(static_cast<std::uint64_t>(type));
    for (int r = 1; r <= static_cast<int>(schedule::last_reduction); ++r) {
        const auto reduction = static_cast<Reduction>(r);
        if (!schedule::defined(type, reduction)) {
            alignas(64) std::byte one[sizeof(T)] = {}, two[sizeof(T)] = {};
            EXPECT_EQ(engine::reduce(type, reduction, one, two, sizeof(T)), Status::unsupported)
                << "type " << static_cast<int>(type) << ", reduction " << r;
            continue;
        }
        for (std::size_t count : {0u, 1u, 2u, 3u, 7u, 16u, 31u, 64u, 67u, 300u}) {
            // Buffers of programs need not be aligned. The bytes around them must not change.
            for (std::size_t shift : {0u, 1u}) {
                std::vector<T> a(count), b(count);
                for (std::size_t i = 0; i < count; ++i) {
                    fill(a[i], random);
                    fill(b[i], random);
                }
                const std::size_t bytes = count * sizeof(T);
                std::vector<std::byte> src(bytes + shift), dst(bytes + shift + 64, std::byte{0xEE});
                if (bytes > 0) {
                    std::memcpy(src.data() + shift, b.data(), bytes);
                    std::memcpy(dst.data() + shift, a.data(), bytes);
                }
                ASSERT_EQ(engine::reduce(type, reduction, src.data() + shift, dst.data() + shift, bytes),
                          Status::ok);
                for (std::size_t i = 0; i < count; ++i) {
                    T got;
                    std::memcpy(&got, dst.data() + shift + i * sizeof(T), sizeof(T));
                    ASSERT_TRUE(equal(got, apply(reduction, a[i], b[i])))
                        << "type " << static_cast<int>(type) << ", reduction " << r << ", element " << i
                        << " of " << count;
                }
                for (std::size_t i = bytes + shift; i < dst.size(); ++i)
                    ASSERT_EQ(dst[i], std::byte{0xEE}) << "wrote behind the end";
            }
        }
    }
}

void check_everything() {
    check_type<std::int8_t>(DataType::int8);
    check_type<std::uint8_t>(DataType::uint8);
    check_type<std::int16_t>(DataType::int16);
    check_type<std::uint16_t>(DataType::uint16);
    check_type<std::int32_t>(DataType::int32);
    check_type<std::uint32_t>(DataType::uint32);
    check_type<std::int64_t>(DataType::int64);
    check_type<std::uint64_t>(DataType::uint64);
    check_type<float>(DataType::float32);
    check_type<double>(DataType::float64);
    check_type<Complex<float>>(DataType::complex64);
    check_type<Complex<double>>(DataType::complex128);
    check_type<std::uint8_t>(DataType::bool8);
    check_type<long double>(DataType::long_double);
    check_type<Complex<long double>>(DataType::complex_long_double);
    check_type<std::int32_t>(DataType::logical32);
    check_type<Pair<std::int32_t, std::int32_t>>(DataType::int32_int32);
    check_type<Pair<std::int16_t, std::int32_t>>(DataType::int16_int32);
    check_type<Pair<std::int64_t, std::int32_t>>(DataType::int64_int32);
    check_type<Pair<float, std::int32_t>>(DataType::float32_int32);
    check_type<Pair<double, std::int32_t>>(DataType::float64_int32);
    check_type<Pair<long double, std::int32_t>>(DataType::long_double_int32);
    check_type<Pair<float, float>>(DataType::float32_float32);
    check_type<Pair<double, double>>(DataType::float64_float64);
}

TEST(Reduce, GivesWhatLoopsInCGive) {
    const auto all = hwy::SupportedTargets();
    int sets = 0;
    for (auto left = all; left != 0; left &= left - 1) {
        const auto target = left & (~left + 1);
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
        SCOPED_TRACE(hwy::TargetName(target));
        check_everything();
        ++sets;
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_GE(sets, 1);
}

TEST(Reduce, KnowsEveryTypeOfTheApi) {
    EXPECT_EQ(static_cast<int>(schedule::last_data_type), 24);
    EXPECT_EQ(static_cast<int>(schedule::last_reduction), 12);
    for (int type = 0; type < 256; ++type) {
        const std::uint32_t bytes = schedule::size_of(static_cast<DataType>(type));
        EXPECT_EQ(bytes != 0, type >= 1 && type <= 24);
        EXPECT_LE(bytes, schedule::most_element_bytes);
        for (int reduction = 13; reduction < 256; ++reduction)
            EXPECT_FALSE(schedule::defined(static_cast<DataType>(type), static_cast<Reduction>(reduction)));
    }
}

}  // namespace
}  // namespace offpath::testing
