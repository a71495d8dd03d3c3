#include "engine/kernels.h"

#include "base/log.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <type_traits>
#include <unordered_map>

namespace offpath::engine {
namespace {

using schedule::DataType;
using schedule::Reduction;

// Loads and stores by memcpy: buffers of MPI programs need not be aligned for their type. Compilers turn the
// loop into vector code.
template <typename T, typename Combine>
void reduce_array(const std::byte* src, std::byte* dst, std::size_t bytes, Combine combine) {
    for (std::size_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
        T a, b;
        std::memcpy(&a, dst + i, sizeof(T));
        std::memcpy(&b, src + i, sizeof(T));
        a = combine(a, b);
        std::memcpy(dst + i, &a, sizeof(T));
    }
}

template <typename T>
Status reduce_typed(Reduction reduction, const std::byte* src, std::byte* dst, std::size_t bytes) {
    switch (reduction) {
        case Reduction::sum:
            reduce_array<T>(src, dst, bytes, [](T a, T b) { return static_cast<T>(a + b); });
            return Status::ok;
        case Reduction::product:
            reduce_array<T>(src, dst, bytes, [](T a, T b) { return static_cast<T>(a * b); });
            return Status::ok;
        case Reduction::minimum:
            reduce_array<T>(src, dst, bytes, [](T a, T b) { return std::min(a, b); });
            return Status::ok;
        case Reduction::maximum:
            reduce_array<T>(src, dst, bytes, [](T a, T b) { return std::max(a, b); });
            return Status::ok;
        default:
            break;
    }
    if constexpr (std::is_integral_v<T>) {
        switch (reduction) {
            case Reduction::band:
                reduce_array<T>(src, dst, bytes, [](T a, T b) { return static_cast<T>(a & b); });
                return Status::ok;
            case Reduction::bor:
                reduce_array<T>(src, dst, bytes, [](T a, T b) { return static_cast<T>(a | b); });
                return Status::ok;
            case Reduction::bxor:
                reduce_array<T>(src, dst, bytes, [](T a, T b) { return static_cast<T>(a ^ b); });
                return Status::ok;
            default:
                break;
        }
    }
    return Status::unsupported;
}

std::unordered_map<std::uint64_t, Kernel>& registry() {
    static std::unordered_map<std::uint64_t, Kernel> kernels;
    return kernels;
}

}  // namespace

Status reduce(DataType type, Reduction reduction, const std::byte* src, std::byte* dst, std::size_t bytes) {
    switch (type) {
        case DataType::int8:
            return reduce_typed<std::int8_t>(reduction, src, dst, bytes);
        case DataType::uint8:
            return reduce_typed<std::uint8_t>(reduction, src, dst, bytes);
        case DataType::int16:
            return reduce_typed<std::int16_t>(reduction, src, dst, bytes);
        case DataType::uint16:
            return reduce_typed<std::uint16_t>(reduction, src, dst, bytes);
        case DataType::int32:
            return reduce_typed<std::int32_t>(reduction, src, dst, bytes);
        case DataType::uint32:
            return reduce_typed<std::uint32_t>(reduction, src, dst, bytes);
        case DataType::int64:
            return reduce_typed<std::int64_t>(reduction, src, dst, bytes);
        case DataType::uint64:
            return reduce_typed<std::uint64_t>(reduction, src, dst, bytes);
        case DataType::float32:
            return reduce_typed<float>(reduction, src, dst, bytes);
        case DataType::float64:
            return reduce_typed<double>(reduction, src, dst, bytes);
        case DataType::none:
            break;
    }
    return Status::unsupported;
}

Status register_kernel(std::uint64_t number, Kernel kernel) {
    if (kernel == nullptr) return Status::invalid;
    return registry().emplace(number, kernel).second ? Status::ok : Status::invalid;
}

Status run_kernel(std::uint64_t number, const std::byte* src, std::byte* dst, std::size_t bytes) {
    auto it = registry().find(number);
    if (it == registry().end()) {
        log::error("kernel {} is not known on this device", number);
        return Status::unsupported;
    }
    return it->second(src, dst, bytes) == 0 ? Status::ok : Status::system;
}

}  // namespace offpath::engine
