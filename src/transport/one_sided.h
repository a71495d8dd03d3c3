// OneSided: memory that peers write into. Where that is passive, this process need not take part: it finds
// what was written by looking at its memory. What is written is a peer's and untrusted. Implemented by ucx/.
// Ownership: windows, own and remote, end before their OneSided. Threads: one, or several one at a time.
// Order: puts are seen in any order, except that what is put after a flush has completed is seen after what
// came before it.
#pragma once

#include "base/completion.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace offpath::transport {

// Memory of this process, zero at first, at the beginning of a cache line.
class Window {
  public:
    virtual ~Window() = default;
    virtual std::span<std::byte> memory() = 0;
    // What a peer passes to attach().
    virtual std::vector<std::byte> key() const = 0;
};

// Memory of a peer. At its end what is in flight is given up, and no completion is called any more.
class RemoteWindow {
  public:
    virtual ~RemoteWindow() = default;
    virtual std::size_t bytes() const = 0;
    // The source (<= max_put) is copied before it returns. ok or an error; errors after that show in flush().
    virtual Status put(std::uint64_t offset, std::span<const std::byte> source) = 0;
    // ok: all that was put can be seen there; in_progress: `completion` follows, inside progress(); or an
    // error.
    virtual Status flush(Completion* completion) = 0;
};

class OneSided {
  public:
    virtual ~OneSided() = default;
    static constexpr std::size_t max_put = 64;

    virtual Status offer(std::size_t bytes, std::unique_ptr<Window>& window) = 0;
    // Does not wait for the peer. Errors: protocol (not a key), version, unavailable (no way leads there).
    virtual Status attach(std::span<const std::byte> key, std::unique_ptr<RemoteWindow>& window) = 0;

    // As Transport. The target, too, has to progress until a writer is connected, and where it is not
    // passive.
    virtual unsigned progress() = 0;
    virtual int event_fd() const = 0;
    virtual Status arm() = 0;
    // For people: the transports.
    virtual std::string describe() const = 0;
};

}  // namespace offpath::transport
