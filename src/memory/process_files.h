// ProcessFiles: reads and writes another process's memory through /proc/PID/mem, which is opened while the
// kernel still permits it. The kernel asks for permission when the file is opened, and never again. So a
// process that permitted process_vm_readv once remains reachable after it has become one that may not be
// dumped, or has changed its user. Slower than process_vm_readv, since the kernel copies page by page.
// Threads: any number, also on one object.
#pragma once

#include "memory/file.h"

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include <sys/types.h>
#include <sys/uio.h>

namespace offpath::memory {

class ProcessFiles {
  public:
    // Opens the files of the process that has this id now. Where the kernel refuses that, usable() is false.
    explicit ProcessFiles(pid_t pid);
    bool usable() const { return memory_ && maps_; }

    // Copies bytes from the start of the lists, as process_vm_readv and process_vm_writev do, but perhaps
    // fewer: those of one entry of `there`. Returns how many, or -1 with errno: EFAULT if the first byte is
    // not mapped with the needed access, ESRCH if the process has ended or has become another program.
    ssize_t move(bool writes, std::span<const iovec> here, std::span<const iovec> there);

  private:
    struct Area {
        std::uint64_t begin = 0, end = 0;
        bool readable = false, writable = false;
    };

    std::uint64_t permitted(bool writes, std::uint64_t address, std::uint64_t bytes);
    std::uint64_t listed(bool writes, std::uint64_t address, std::uint64_t bytes) const;
    void list_areas();

    File memory_, maps_;
    std::mutex mutex_;
    std::vector<Area> areas_;  // in the order of their addresses
    std::uint64_t listed_ns_ = 0;
    bool said_ = false;
};

}  // namespace offpath::memory
