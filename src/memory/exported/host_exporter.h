// HostExporter: exports a host's memory to a device that can import it (back end xgvmi). transport/ucx
// implements it where the UCX found has exported memory handles. Threads: one per object.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace offpath::memory {

// A registration of [address, address + bytes) of this process, and its blob.
class HostExport {
  public:
    virtual ~HostExport() = default;  // deregisters; the device must have released its import
    virtual std::span<const std::byte> blob() const = 0;
};
class HostExporter {
  public:
    virtual ~HostExporter() = default;  // outlives its exports
    virtual Status export_region(void* address, std::size_t bytes, std::unique_ptr<HostExport>& exported,
                                 std::string& problem) = 0;
};

}  // namespace offpath::memory
