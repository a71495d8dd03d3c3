// HostMemory: how a proxy reads and writes the memory of one host rank, whatever the back end (`xgvmi`,
// `map`, `cma`, `staged`). Each session has one object, made when the client attaches. The client's messages
// add and remove its regions. Every range is checked; a bad one yields Status::access and touches nothing.
// Threads: the proxy's thread only.
#pragma once

#include "base/completion.h"
#include "base/network_place.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace offpath::memory {

enum class BackEnd : std::uint8_t { xgvmi = 1, map = 2, cma = 3, staged = 4 };
const char* to_string(BackEnd back_end);

// A buffer of a host rank as a doorbell names it. With region 0, `address` is a virtual address anywhere in
// the process. Otherwise `region` is a registered region and `address` is an offset in it.
struct HostRange {
    std::uint64_t region = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
};

// A whole range, and the local bytes that it is copied to or from.
struct HostPiece {
    HostRange range;
    std::byte* local = nullptr;
};

// The first bytes of a range that lie together: behind `pointer`, which is for reading only, or without one.
struct ReadableRun {
    const std::byte* pointer = nullptr;
    std::uint64_t bytes = 0;
};

class HostMemory {
  public:
    virtual ~HostMemory() = default;

    // The back end that serves `range`.
    virtual BackEnd back_end(const HostRange& range) const = 0;

    // A pointer through which this process may access [offset, offset + bytes) of `range`. Null when the back
    // end has none; then use read() and write(). Valid until the region is revoked; the session's owner
    // delays the revocation while the pointer is in use.
    virtual std::byte* direct(const HostRange& range, std::uint64_t offset, std::uint64_t bytes) = 0;

    // Whether parts of memory without a pointer can be read through one all the same, as readable_run() says.
    // Its pointers stay valid as long as the memory itself. To write there, use write(): only it notices that
    // the client has given up this device.
    virtual bool has_shared_pages() const { return false; }
    virtual ReadableRun readable_run(const HostRange& /*range*/, std::uint64_t /*offset*/,
                                     std::uint64_t bytes) {
        return {nullptr, bytes};
    }

    // The place of [offset, offset + bytes) of `range` for a transport; empty where there is none. Valid as
    // long as a pointer from direct().
    virtual NetworkPlace network_place(const HostRange& /*range*/, std::uint64_t /*offset*/,
                                       std::uint64_t /*bytes*/) {
        return {};
    }
    // Copies at least least_network_bytes from such a place of this rank to one of any rank of this proxy.
    // Returns what write() returns.
    virtual Status copy_places(const NetworkPlace& /*from*/, const NetworkPlace& /*to*/,
                               std::size_t /*bytes*/, Completion* /*completion*/) {
        return Status::unsupported;
    }

    // Copies between the host's memory and this process's. ok: done. in_progress: `completion` follows.
    // access: the host's memory is not readable or writable there.
    virtual Status read(const HostRange& range, std::uint64_t offset, void* destination, std::size_t bytes,
                        Completion* completion) = 0;
    virtual Status write(const HostRange& range, std::uint64_t offset, const void* source, std::size_t bytes,
                         Completion* completion) = 0;

    // Reads or writes all pieces, as one call for each would, but with fewer where possible. Pieces that
    // overlap are copied in no promised order. Returns ok or the first error, never in_progress; after an
    // error no more pieces are begun. `later` returns how many calls of `completion` (not null) are still to
    // come, also after an error.
    virtual Status copy_pieces(bool writes, std::span<const HostPiece> pieces, Completion* completion,
                               std::uint32_t& later);

    // Whether read() of this part completes at once. Only then may its completion be null.
    virtual bool reads_at_once(const HostRange& /*range*/, std::uint64_t /*offset*/,
                               std::uint64_t /*bytes*/) {
        return false;
    }
    // Whether blocked reads or writes are already outstanding. If so, the caller should not start more,
    // because they would hold buffers that other operations need.
    virtual bool waits() const { return false; }

    // Whether the host can copy within its own memory for us, so that the bytes need not come here and go
    // back.
    virtual bool copies_within(const HostRange& /*from*/, const HostRange& /*to*/) const { return false; }
    // Makes such a copy; returns what write() returns. The ranges must not overlap. unsupported unless
    // copies_within().
    virtual Status copy(const HostRange& /*from*/, std::uint64_t /*from_offset*/, const HostRange& /*to*/,
                        std::uint64_t /*to_offset*/, std::size_t /*bytes*/, Completion* /*completion*/) {
        return Status::unsupported;
    }
};

}  // namespace offpath::memory
