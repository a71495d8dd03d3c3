// MappedFiles: memory files of the program that are mapped here, so that program and functions have the same
// memory. A mapping lives until unmap() or the process's end, also if the program has given up its own.
// Threads: any.
#pragma once

#include "base/status.h"
#include "target/records.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include <sys/types.h>

namespace offpath::target {

class MappedFiles {
  public:
    // Errors as MapFile says; unsupported: the program is on another system.
    Status map(pid_t program, const MapFile& wanted, std::uint64_t& address, std::string& problem);
    // Gives this process pages of its own from the first write on. False: no file is mapped there.
    bool part(std::uint64_t address);
    bool unmap(std::uint64_t address);

  private:
    struct Mapped {
        int descriptor = -1;
        std::uint64_t bytes = 0;
    };
    std::mutex mutex_;
    std::map<std::uint64_t, Mapped> files_;  // by address
};

}  // namespace offpath::target
