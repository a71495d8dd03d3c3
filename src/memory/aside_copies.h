// AsideCopies: copies of a client's memory that may have to wait (residency.h), made by a thread of their own
// beside the proxy's loop, one after the other. The thread copies to and from buffers of its own, so that a
// copy that never ends can be given up: nothing of the session is touched by it any more. It is started by
// the first such copy. One that waits for ever keeps its thread, and its buffer, until the client's process
// ends or the memory answers.
//
// Ownership: the session's memory. Threads: the proxy's; completions are called by progress(), stop() and
// abandon() only.
#pragma once

#include "base/completion.h"
#include "memory/piece_lists.h"
#include "memory/residency.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace offpath::memory {

class AsideCopies {
  public:
    // `given_up` as in SessionMemoryConfig.
    static Status open(pid_t pid, const std::atomic<std::uint32_t>* given_up,
                       std::unique_ptr<AsideCopies>& made);
    ~AsideCopies();
    AsideCopies(const AsideCopies&) = delete;
    AsideCopies& operator=(const AsideCopies&) = delete;

    // One copy of many pieces. in_progress, or an error. What is written is taken from here at once; what is
    // read comes here before the completion.
    Status start(bool writes, std::span<const ForeignPiece> pieces, Completion* completion);
    // Returns how many have ended; `residency` learns what was found on the way.
    unsigned progress(Residency& residency, std::uint64_t now_ns);
    std::size_t outstanding() const { return outstanding_; }
    // Readable when there is something for progress().
    int event_fd() const;
    bool finished_some() const;
    // What has not begun ends with `reason`.
    void stop(Status reason);
    // Everything does.
    void abandon(Status reason);

  private:
    struct Shared;
    explicit AsideCopies(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
    void end(bool begun_too, Status reason);

    const std::shared_ptr<Shared> shared_;
    std::size_t outstanding_ = 0;
};

}  // namespace offpath::memory
