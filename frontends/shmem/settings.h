// What the environment says. PE 0's values hold for all PEs.
#pragma once

#include <cstdint>
#include <string>

namespace offpath::shmem {

// Trivially copyable.
struct Settings {
    std::uint64_t heap_bytes = 0;  // 0: as much as fits, at most 1 GiB
    std::uint64_t near_device_bytes = 64 << 10;
    std::uint32_t checks = 0;
    std::uint32_t map = 1;  // memory of PEs of the node
};

// Throws std::invalid_argument for what cannot be read, in words for people.
Settings read_settings();

// A size as SHMEM_SYMMETRIC_SIZE has it: a number, which may have a fraction, and k, m, g or t. Throws
// likewise.
std::uint64_t parse_size(const std::string& text, const std::string& name);

// A heap that leaves room for others, where nobody asked for a size.
std::uint64_t default_heap_bytes();

}  // namespace offpath::shmem
