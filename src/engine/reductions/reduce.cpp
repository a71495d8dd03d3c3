#include "engine/reductions/reduce.h"

#include "base/log.h"
#include "engine/reductions/reduce_vector.h"

#include <cstring>
#include <limits>

namespace offpath::engine {
namespace {

using schedule::DataType;
using schedule::Reduction;

// On x86, a long double has 10 bytes of value and 6 bytes of padding, which stay as they are.
constexpr std::size_t long_double_bytes = std::numeric_limits<long double>::digits == 64 ? 10 : 16;
constexpr std::size_t long_double_step = 16;

long double load(const std::byte* from) {
    long double value = 0;
    std::memcpy(&value, from, long_double_bytes);
    return value;
}

void store(std::byte* to, long double value) {
    std::memcpy(to, &value, long_double_bytes);
}

Status reduce_long_doubles(Reduction reduction, const std::byte* src, std::byte* dst, std::size_t bytes) {
    const auto each = [&](auto combine) {
        for (std::size_t i = 0; i + long_double_step <= bytes; i += long_double_step)
            store(dst + i, combine(load(dst + i), load(src + i)));
        return Status::ok;
    };
    switch (reduction) {
        case Reduction::sum:
            return each([](long double a, long double b) { return a + b; });
        case Reduction::product:
            return each([](long double a, long double b) { return a * b; });
        case Reduction::minimum:
            return each([](long double a, long double b) { return a < b ? a : b; });
        case Reduction::maximum:
            return each([](long double a, long double b) { return a > b ? a : b; });
        default:
            return Status::unsupported;
    }
}

Status multiply_complex_long_doubles(const std::byte* src, std::byte* dst, std::size_t bytes) {
    for (std::size_t i = 0; i + 2 * long_double_step <= bytes; i += 2 * long_double_step) {
        const long double ar = load(dst + i), ai = load(dst + i + long_double_step);
        const long double br = load(src + i), bi = load(src + i + long_double_step);
        store(dst + i, ar * br - ai * bi);
        store(dst + i + long_double_step, ar * bi + ai * br);
    }
    return Status::ok;
}

Status locate_long_doubles(bool least, const std::byte* src, std::byte* dst, std::size_t bytes) {
    constexpr std::size_t step = 2 * long_double_step;
    for (std::size_t i = 0; i + step <= bytes; i += step) {
        const long double a = load(dst + i), b = load(src + i);
        std::int32_t a_index, b_index;
        std::memcpy(&a_index, dst + i + long_double_step, sizeof a_index);
        std::memcpy(&b_index, src + i + long_double_step, sizeof b_index);
        const bool better = least ? b < a : b > a;
        if (better) store(dst + i, b);
        if (better || (a == b && b_index < a_index))
            std::memcpy(dst + i + long_double_step, &b_index, sizeof b_index);
    }
    return Status::ok;
}

}  // namespace

Status reduce(DataType type, Reduction reduction, const std::byte* src, std::byte* dst, std::size_t bytes) {
    if (!schedule::defined(type, reduction)) return Status::unsupported;
    switch (type) {
        case DataType::long_double:
            return reduce_long_doubles(reduction, src, dst, bytes);
        case DataType::complex_long_double:
            return reduction == Reduction::sum ? reduce_long_doubles(reduction, src, dst, bytes)
                                               : multiply_complex_long_doubles(src, dst, bytes);
        case DataType::long_double_int32:
            return locate_long_doubles(reduction == Reduction::minloc, src, dst, bytes);
        default:
            return reduce_vector(type, reduction, src, dst, bytes);
    }
}

}  // namespace offpath::engine
