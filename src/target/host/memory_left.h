// How much memory the system and the control groups of this process can still give. Threads: any.
#pragma once

#include <cstdint>
#include <string>

namespace offpath::target {

// The smaller of MemAvailable and what the limits of the control groups leave, those above it included;
// UINT64_MAX if nothing limits it. `root`: the file system that has /proc and /sys, for tests.
std::uint64_t memory_left(const std::string& root = "");

// The bytes of this process's own memory that are present.
std::uint64_t memory_present();

}  // namespace offpath::target
