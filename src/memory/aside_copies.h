// AsideCopies: copies of a client's memory that may block (residency.h). A separate thread makes them, one
// after the other, while the proxy's loop goes on. The first such copy starts the thread.
//
// The thread copies to and from buffers of its own and touches nothing else of the session. A copy that never
// ends can therefore be abandoned. It keeps its thread and its buffer until the client's process ends or the
// memory answers.
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
    // `given_up` and `writing` have the meaning that they have in SessionMemoryConfig.
    static Status open(pid_t pid, const std::atomic<std::uint32_t>* given_up,
                       std::atomic<std::uint32_t>* writing, std::unique_ptr<AsideCopies>& made);
    ~AsideCopies();
    AsideCopies(const AsideCopies&) = delete;
    AsideCopies& operator=(const AsideCopies&) = delete;

    // Starts one copy of many pieces. Returns in_progress or an error. A write takes its local bytes before
    // start() returns; a read delivers them before the completion.
    Status start(bool writes, std::span<const ForeignPiece> pieces, Completion* completion);
    // Returns how many copies have ended. `residency` learns what the thread found out about the memory.
    unsigned progress(Residency& residency, std::uint64_t now_ns);
    std::size_t outstanding() const { return outstanding_; }
    // Readable when there is something for progress().
    int event_fd() const;
    bool finished_some() const;
    // Copies that have not begun end with `reason`.
    void stop(Status reason);
    // All copies end with `reason`.
    void abandon(Status reason);

  private:
    struct Shared;
    explicit AsideCopies(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
    void end(bool begun_too, Status reason);

    const std::shared_ptr<Shared> shared_;
    std::size_t outstanding_ = 0;
};

}  // namespace offpath::memory
