// Kernels: runs the kernels of one session's client. The proxy implements it (proxy/kernel_jobs.h), and tests
// have a stand-in. Threads: the engine's. Ownership: the session's owner; it outlives the session.
#pragma once

#include "engine/mover/transfer.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace offpath::engine {

struct KernelBuffer {
    memory::HostRange range;   // its owner keeps it pinned until the run is over
    std::uint32_t access = 0;  // offpath_access_t
};

class Kernels {
  public:
    virtual ~Kernels() = default;
    // Runs the kernel after those of its stream that were started before. `buffers` and `arguments` are
    // copied. in_progress: `done` follows, never from within this call. Another status: there is no such
    // kernel.
    virtual Status run(std::uint64_t kernel, std::span<const KernelBuffer> buffers,
                       std::span<const std::byte> arguments, Completion* done) = 0;
    // Forgets a run that has not begun. False: it has begun, or is over; `done` follows or was called.
    virtual bool take_back(const Completion* done) = 0;
};

}  // namespace offpath::engine
