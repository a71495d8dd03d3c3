// OneSided: memory that peers write into. Where puts are passive, this process takes no part in them: it
// finds what was written by looking at its memory. A peer wrote the contents, so they are untrusted. ucx/
// implements this interface.
//
// Ownership: windows, local and remote, must be destroyed before their OneSided. Threads: one, or several
// that take turns. Order: puts become visible in any order, with one exception. A put that follows a
// completed flush becomes visible after everything before that flush.
#pragma once

#include "base/completion.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace offpath::transport {

// Memory of this process. It is zeroed and starts at a cache line.
class Window {
  public:
    virtual ~Window() = default;
    virtual std::span<std::byte> memory() = 0;
    // The bytes that a peer passes to attach().
    virtual std::vector<std::byte> key() const = 0;
};

// Memory of a peer. Destruction abandons puts in flight; no completion is called after it.
class RemoteWindow {
  public:
    virtual ~RemoteWindow() = default;
    virtual std::size_t bytes() const = 0;
    // Copies the source (at most max_put bytes) before it returns. Returns ok or an error; later errors show
    // in flush().
    virtual Status put(std::uint64_t offset, std::span<const std::byte> source) = 0;
    // ok: every put is visible at the peer. in_progress: `completion` is called later, inside progress().
    // Otherwise an error.
    virtual Status flush(Completion* completion) = 0;
};

class OneSided {
  public:
    virtual ~OneSided() = default;
    static constexpr std::size_t max_put = 64;

    virtual Status offer(std::size_t bytes, std::unique_ptr<Window>& window) = 0;
    // Does not wait for the peer. Errors: protocol (not a key), version, unavailable (no transport reaches
    // the peer).
    virtual Status attach(std::span<const std::byte> key, std::unique_ptr<RemoteWindow>& window) = 0;

    // These behave as in Transport. The target must also progress until a writer is connected. Where puts are
    // not passive, it must progress always.
    virtual unsigned progress() = 0;
    virtual int event_fd() const = 0;
    virtual Status arm() = 0;
    // Names the transports, for messages to people.
    virtual std::string describe() const = 0;
};

}  // namespace offpath::transport
