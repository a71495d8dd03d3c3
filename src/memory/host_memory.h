// HostMemory: how a proxy reads and writes the memory of one host rank, whatever the back end: `xgvmi`,
// `map`, `cma`, `staged`. One object per session, made when the client attaches; its regions come and go with
// the client's messages. Threads: the proxy's thread only. Every range is checked; a bad one is
// Status::access and touches nothing.
#pragma once

#include "base/completion.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace offpath::memory {

enum class BackEnd : std::uint8_t { xgvmi = 1, map = 2, cma = 3, staged = 4 };
const char* to_string(BackEnd back_end);

// A buffer of a host rank as a doorbell names it. region 0: any memory of the process, `address` is its
// virtual address; else a region that was registered, and `address` is the offset in it.
struct HostRange {
    std::uint64_t region = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
};

// All of a range, and the bytes of ours that it is copied to or from.
struct HostPiece {
    HostRange range;
    std::byte* local = nullptr;
};

class HostMemory {
  public:
    virtual ~HostMemory() = default;

    // The back end that serves `range`.
    virtual BackEnd back_end(const HostRange& range) const = 0;

    // A pointer through which this process may read and write [offset, offset + bytes) of `range`, or nullptr
    // when the back end has none (then use read and write). Valid until the region is revoked, for which the
    // session's owner waits.
    virtual std::byte* direct(const HostRange& range, std::uint64_t offset, std::uint64_t bytes) = 0;

    // Copies between the host's memory and this process's. ok: done; in_progress: `completion` follows;
    // access: not readable or writable there.
    virtual Status read(const HostRange& range, std::uint64_t offset, void* destination, std::size_t bytes,
                        Completion* completion) = 0;
    virtual Status write(const HostRange& range, std::uint64_t offset, const void* source, std::size_t bytes,
                         Completion* completion) = 0;

    // Reads all pieces, or writes them, as by a call for each, where possible by fewer; several that overlap
    // in no promised order. Not in_progress: ok, or the first error, after which no more are begun. `later`:
    // how often `completion`, which is not null, will be called from now on, after an error too.
    virtual Status copy_pieces(bool writes, std::span<const HostPiece> pieces, Completion* completion,
                               std::uint32_t& later);

    // Whether read() of this part answers at once: only then may its completion be null.
    virtual bool reads_at_once(const HostRange& /*range*/, std::uint64_t /*offset*/,
                               std::uint64_t /*bytes*/) {
        return false;
    }
    // Whether reads and writes that wait for something are outstanding already, so that more of them had
    // better not take buffers that others need.
    virtual bool waits() const { return false; }

    // Whether the host copies within its own memory for us, so that the bytes need not come here and go back.
    virtual bool copies_within(const HostRange& /*from*/, const HostRange& /*to*/) const { return false; }
    // Such a copy; answers as write(). The ranges must not overlap. unsupported unless copies_within().
    virtual Status copy(const HostRange& /*from*/, std::uint64_t /*from_offset*/, const HostRange& /*to*/,
                        std::uint64_t /*to_offset*/, std::size_t /*bytes*/, Completion* /*completion*/) {
        return Status::unsupported;
    }
};

}  // namespace offpath::memory
