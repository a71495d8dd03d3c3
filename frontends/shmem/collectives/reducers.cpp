#include "collectives/reducers.h"

#include <array>
#include <type_traits>

// The standard's complex types are those of C, which C++ compilers warn about.
#pragma GCC diagnostic ignored "-Wpedantic"

namespace offpath::shmem {

namespace {

template <class T, Reduction operation>
T combined(T left, T right) {
    if constexpr (operation == Reduction::and_)
        return static_cast<T>(left & right);
    else if constexpr (operation == Reduction::or_)
        return static_cast<T>(left | right);
    else if constexpr (operation == Reduction::xor_)
        return static_cast<T>(left ^ right);
    else if constexpr (operation == Reduction::max)
        return left < right ? right : left;
    else if constexpr (operation == Reduction::min)
        return right < left ? right : left;
    else if constexpr (std::is_integral_v<T>) {
        // Wraps around, because it computes in an unsigned type that is at least as wide as int.
        using Wide = std::make_unsigned_t<decltype(T{} + T{})>;
        using Unsigned = std::make_unsigned_t<T>;
        const Wide a = static_cast<Unsigned>(left), b = static_cast<Unsigned>(right);
        return static_cast<T>(operation == Reduction::sum ? a + b : a * b);
    } else
        return operation == Reduction::sum ? left + right : left * right;
}

template <class T, Reduction operation>
void combine(void* into, const void* from, std::size_t count) {
    auto* __restrict left = static_cast<T*>(into);
    const auto* __restrict right = static_cast<const T*>(from);
    for (std::size_t i = 0; i < count; ++i)
        left[i] = combined<T, operation>(left[i], right[i]);
}

template <class T, Reduction operation>
constexpr Reducer entry{sizeof(T), combine<T, operation>};
constexpr Reducer none{};

}  // namespace

template <class T>
const Reducer& reducer(Reduction operation) {
    constexpr bool ordered = std::is_arithmetic_v<T>;
    if constexpr (std::is_integral_v<T>) {
        if (operation == Reduction::and_) return entry<T, Reduction::and_>;
        if (operation == Reduction::or_) return entry<T, Reduction::or_>;
        if (operation == Reduction::xor_) return entry<T, Reduction::xor_>;
    }
    if constexpr (ordered) {
        if (operation == Reduction::max) return entry<T, Reduction::max>;
        if (operation == Reduction::min) return entry<T, Reduction::min>;
    }
    if (operation == Reduction::sum) return entry<T, Reduction::sum>;
    if (operation == Reduction::prod) return entry<T, Reduction::prod>;
    return none;
}

template const Reducer& reducer<char>(Reduction);
template const Reducer& reducer<signed char>(Reduction);
template const Reducer& reducer<short>(Reduction);
template const Reducer& reducer<int>(Reduction);
template const Reducer& reducer<long>(Reduction);
template const Reducer& reducer<long long>(Reduction);
template const Reducer& reducer<unsigned char>(Reduction);
template const Reducer& reducer<unsigned short>(Reduction);
template const Reducer& reducer<unsigned int>(Reduction);
template const Reducer& reducer<unsigned long>(Reduction);
template const Reducer& reducer<unsigned long long>(Reduction);
template const Reducer& reducer<float>(Reduction);
template const Reducer& reducer<double>(Reduction);
template const Reducer& reducer<long double>(Reduction);
template const Reducer& reducer<double _Complex>(Reduction);
template const Reducer& reducer<float _Complex>(Reduction);

}  // namespace offpath::shmem
