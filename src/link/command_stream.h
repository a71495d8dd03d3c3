// CommandStream: the commands of one client as they come over a link. Batches go in, in any order; records
// come out in the client's order. It trusts nothing: a client breaks the stream by having more outstanding
// than its room, or by sending invalid records. Pure. Threads: one.
#pragma once

#include "control/commands.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

namespace offpath::link {

// Emptied batches that either end of a link keeps for later ones, so that these allocate nothing.
constexpr std::size_t max_spare_batches = 16;

class CommandStream {
  public:
    // `room`: the most bytes of commands that may be here without having been taken.
    explicit CommandStream(std::uint64_t room) : room_(room) {}

    // False: the client broke the rules; `why` says how. The bytes are copied.
    bool accept(std::uint64_t number, std::span<const std::byte> batch, const char*& why);

    // The same as ProxyChannel::next.
    control::NextRecord next(std::span<const std::byte>& record);
    bool has_records() const { return !ready_.empty(); }
    // Bytes of records returned so far; the client may reuse that much room.
    std::uint64_t taken() const { return taken_; }

  private:
    using Batch = std::vector<std::byte>;
    Batch copy(std::span<const std::byte> bytes);

    const std::uint64_t room_;
    std::uint64_t next_number_ = 0;
    std::uint64_t arrived_ = 0, taken_ = 0;
    std::map<std::uint64_t, Batch> early_;
    std::deque<Batch> ready_;
    std::size_t place_ = 0;  // in ready_.front()
    Batch current_;          // holds the last record after its batch has left ready_
    std::vector<Batch> spare_;
};

}  // namespace offpath::link
