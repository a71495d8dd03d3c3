// DeviceMemory: the memory that the program allocates on the device. It lives until the program releases it
// or the process ends. Threads: any.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace offpath::target {

class DeviceMemory {
  public:
    // Blocks are aligned to 128 bytes, and those of 1 MiB or more are zeroed. memory, with `problem`: the
    // device has less than that.
    Status allocate(std::uint64_t bytes, std::uint64_t& address, std::string& problem);
    // False: there is no such block.
    bool release(std::uint64_t address);
    std::uint64_t in_use() const;

  private:
    mutable std::mutex mutex_;
    std::map<std::uint64_t, std::uint64_t> blocks_;  // bytes by address
    std::uint64_t in_use_ = 0;
};

}  // namespace offpath::target
