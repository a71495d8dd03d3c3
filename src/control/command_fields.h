// Building blocks of command records (commands.h): limits, ranges of the client's memory, arrays.
#pragma once

#include "base/field_codec.h"

#include <cstdint>
#include <cstring>
#include <span>

namespace offpath::control {

constexpr std::size_t max_record_bytes = 32 << 10;
constexpr std::size_t record_header_bytes = 8;
constexpr std::uint64_t max_schedule_bytes = 64 << 20;
constexpr std::uint32_t max_buffers = 1u << 16;

// A buffer of the client: region 0 and a virtual address, or a registered region and an offset in it.
struct BufferRange {
    std::uint64_t region = 0, address = 0, bytes = 0;
    friend bool operator==(const BufferRange&, const BufferRange&) = default;
};

// An array of T inside a record; it need not be aligned.
template <typename T>
class Packed {
  public:
    Packed() = default;
    explicit Packed(std::span<const std::byte> bytes) : bytes_(bytes) {}
    std::size_t size() const { return bytes_.size() / sizeof(T); }
    T operator[](std::size_t i) const {
        T value;
        std::memcpy(&value, bytes_.data() + i * sizeof(T), sizeof(T));
        return value;
    }
    std::span<const std::byte> bytes() const { return bytes_; }

  private:
    std::span<const std::byte> bytes_;
};
template <typename T>
Packed<T> pack(std::span<const T> values) {
    return Packed<T>(std::as_bytes(values));
}

}  // namespace offpath::control
