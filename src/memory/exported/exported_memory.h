// ExportedMemory: what back end `xgvmi` needs from the fabric, which implements it (transport/ucx, where the
// UCX found has exported memory handles). The host exports a registration as a blob; the device imports it
// and lets its network card read and write the host's memory by the host's addresses. Ownership: handles
// belong to whoever imported them and go back through release(), before the same address is imported anew:
// the device hears nothing of unmaps at the host. Threads: the proxy's thread only.
#pragma once

#include "base/completion.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace offpath::memory {

class ExportedMemory {
  public:
    virtual ~ExportedMemory() = default;
    using Handle = void*;

    // Whether this device can import at all; `why_not` is for people. Asked once, before any session. It must
    // try in a context of its own: requesting the feature together with RMA makes endpoints of transports
    // that lack it unreachable.
    virtual Status probe(std::string& why_not) = 0;

    // Imports the memory [address, address + bytes) of a host from the blob that the host's library packed.
    virtual Status import_region(std::span<const std::byte> blob, std::uint64_t address, std::uint64_t bytes,
                                 Handle& handle) = 0;
    virtual void release(Handle handle) = 0;

    // Copies between host memory at `address` and this process's; the range has been checked against the
    // import. ok, in_progress (`completion` follows) or an error.
    virtual Status read(Handle handle, std::uint64_t address, void* destination, std::size_t bytes,
                        Completion* completion) = 0;
    virtual Status write(Handle handle, std::uint64_t address, const void* source, std::size_t bytes,
                         Completion* completion) = 0;
};

}  // namespace offpath::memory
