// DeviceMemory: the memory that the program allocates on the device. It lives until the program releases it
// or the process ends. What it has been given counts as used, whether or not it has touched it: the kernel
// would promise more memory than there is, and later kill the process. Threads: any.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace offpath::target {

class DeviceMemory {
  public:
    // `root`: as for memory_left().
    explicit DeviceMemory(std::string root = "") : root_(std::move(root)) {}
    // Blocks are aligned to 128 bytes, and those of 1 MiB or more are zeroed. memory, with `problem`: the
    // device has less than that.
    Status allocate(std::uint64_t bytes, std::uint64_t& address, std::string& problem);
    // False: there is no such block.
    bool release(std::uint64_t address);
    std::uint64_t in_use() const;

  private:
    std::uint64_t left_for(std::uint64_t bytes);

    const std::string root_;
    mutable std::mutex mutex_;
    std::map<std::uint64_t, std::uint64_t> blocks_;  // bytes by address
    std::uint64_t in_use_ = 0;
    std::uint64_t unchecked_ = 0;  // given since what is left was looked up
};

}  // namespace offpath::target
