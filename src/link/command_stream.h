// CommandStream: the commands of one client as they come over a link: batches in any order go in, records in
// the client's order come out. Trusts nothing: a client that has more outstanding than its room, or sends
// records that are none, breaks the stream. Pure. Threads: one.
#pragma once

#include "control/commands.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

namespace offpath::link {

class CommandStream {
  public:
    // `room`: bytes of commands that may be here and not be taken.
    explicit CommandStream(std::uint64_t room) : room_(room) {}

    // False: the client broke the rules; `why` says how. The bytes are copied.
    bool accept(std::uint64_t number, std::span<const std::byte> batch, const char*& why);

    // As ProxyChannel::next.
    control::NextRecord next(std::span<const std::byte>& record);
    bool has_records() const { return !ready_.empty(); }
    // Bytes of records handed out so far: what the client may use again.
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
    Batch current_;          // what the last record lies in, once it is not in ready_ any more
    std::vector<Batch> spare_;
};

}  // namespace offpath::link
