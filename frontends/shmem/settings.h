// Settings from the environment. PE 0's values hold for all PEs.
#pragma once

#include <cstdint>
#include <string>

namespace offpath::shmem {

// Trivially copyable.
struct Settings {
    std::uint64_t heap_bytes = 0;  // 0: the default size
    std::uint64_t near_device_bytes = 64 << 10;
    std::uint32_t checks = 0;
    std::uint32_t attach_again = 1;  // whether the job goes on with a lost device's successor
    std::uint32_t map = 1;           // whether to map memory of other PEs of the node
};

// Throws std::invalid_argument, with a text for people, for a value that cannot be parsed.
Settings read_settings();

// Parses a size as in SHMEM_SYMMETRIC_SIZE: a number, possibly with a fraction, and k, m, g or t. Throws
// std::invalid_argument, too.
std::uint64_t parse_size(const std::string& text, const std::string& name);

// The heap size if no size was set; it leaves memory for other processes.
std::uint64_t default_heap_bytes();

}  // namespace offpath::shmem
