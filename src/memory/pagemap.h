// Bits of the entries of /proc/PID/pagemap (admin-guide/mm/pagemap in the kernel's documentation).
#pragma once

#include <cstdint>

namespace offpath::memory::pagemap {

constexpr std::uint64_t present = 1ull << 63;
constexpr std::uint64_t of_a_file = 1ull << 61;  // or shared anonymous
constexpr std::uint64_t write_protected = 1ull << 57;

}  // namespace offpath::memory::pagemap
