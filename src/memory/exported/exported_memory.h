// ExportedMemory: what back end `xgvmi` needs from the fabric. transport/ucx implements it where the UCX
// found has exported memory handles. The host exports a registration as a blob. The device imports the blob,
// and its network card then reads and writes the host's memory at the host's addresses.
//
// Ownership: the importer owns a handle and gives it back through release(). It must do so before it imports
// the same address again, because the device is not told about unmaps at the host. Threads: the proxy's
// thread only.
#pragma once

#include "base/completion.h"
#include "base/network_place.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace offpath::memory {

class ExportedMemory {
  public:
    virtual ~ExportedMemory() = default;
    using Handle = void*;

    // Whether this device can import at all; `why_not` is for people. Called once, before any session. The
    // implementation must try in a separate context: requesting the feature together with RMA makes endpoints
    // unreachable over transports that lack it.
    virtual Status probe(std::string& why_not) = 0;

    // Imports host memory [address, address + bytes) from the blob that the host's library packed.
    virtual Status import_region(std::span<const std::byte> blob, std::uint64_t address, std::uint64_t bytes,
                                 Handle& handle) = 0;
    virtual void release(Handle handle) = 0;

    // What the fabric's transport takes in the place of a pointer to `address`; empty where the fabric does
    // not know these imports.
    virtual NetworkPlace place(Handle /*handle*/, std::uint64_t /*address*/) const { return {}; }
    // Copies at least least_network_bytes from one such place to another, which need not be of the same
    // import. Returns as write() does.
    virtual Status copy(const NetworkPlace& /*from*/, const NetworkPlace& /*to*/, std::size_t /*bytes*/,
                        Completion* /*completion*/) {
        return Status::unsupported;
    }

    // Copies between host memory at `address` and this process's memory. The caller has checked the range
    // against the import. Returns ok, in_progress (`completion` follows) or an error.
    virtual Status read(Handle handle, std::uint64_t address, void* destination, std::size_t bytes,
                        Completion* completion) = 0;
    virtual Status write(Handle handle, std::uint64_t address, const void* source, std::size_t bytes,
                         Completion* completion) = 0;
};

}  // namespace offpath::memory
