// Building blocks of command records (commands.h): limits and ranges of the client's memory.
#pragma once

#include <cstddef>
#include <cstdint>

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

inline bool part_fits(std::uint64_t first, std::uint64_t count, std::uint64_t total) {
    return first <= total && count <= total - first;
}

}  // namespace offpath::control
