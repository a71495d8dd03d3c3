// StagedTransfers: the proxy's half of back end `staged` for one session: copies between the client's memory
// and the proxy's, with the client's help. Implementations: SharedStagedTransfers where both sides share
// memory, and the link's (link/) where they do not. Ownership: the session's memory owns it. Threads: the
// proxy's only; completions are called inside progress(), stop() and abandon(), and may start new transfers.
#pragma once

#include "base/completion.h"

#include <cstddef>
#include <cstdint>

namespace offpath::memory {

// The ring of a staging area carries the first two.
enum class StagingDirection : std::uint8_t { to_device = 1, to_host, within_host };

class StagedTransfers {
  public:
    virtual ~StagedTransfers() = default;

    // Starts a transfer. `local` stays in place until the completion. Returns in_progress, or the error
    // because of which no more transfers are accepted. The completion gets access when part of the client's
    // range is not mapped; some of the range may then have been copied.
    virtual Status start(StagingDirection direction, std::uint64_t host_address, std::byte* local,
                         std::size_t bytes, Completion* completion) = 0;
    // Whether the client copies within its own memory on request. The request is copy(), which returns what
    // start() returns.
    virtual bool copies_within() const { return false; }
    virtual Status copy(std::uint64_t /*from*/, std::uint64_t /*to*/, std::size_t /*bytes*/,
                        Completion* /*completion*/) {
        return Status::unsupported;
    }
    // Advances transfers; the work is bounded. Returns how much moved.
    virtual unsigned progress() = 0;
    // These behave as in SessionMemory.
    virtual Status arm() = 0;
    virtual int event_fd() const = 0;
    virtual Status health() const = 0;
    virtual void stop(Status reason) = 0;
    virtual bool drained() const = 0;
    virtual void abandon(Status reason) = 0;
};

}  // namespace offpath::memory
