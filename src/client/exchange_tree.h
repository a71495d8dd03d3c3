// ExchangeTree: allgathers among the processes of a job over a tree of TCP connections. It is for launchers
// that can look up what another process has published, but do not reliably count the processes of a fence.
// Every process with children publishes where it listens; each child looks up its parent.
//
// Several programs may run in turn as the same ranks. A published record may therefore come from a process
// that is gone, or that still runs an earlier program. Neither accepts a call, so a child repeats the look-up
// until the process of its own program has published. join() returns when the whole tree is connected. A
// process that is lost before then is replaced by the next one with the same rank. A loss after join() is an
// error.
//
// Trust: the listener's address and a secret are published. Both sides prove that they know them before data
// use a connection. Ownership: it owns its connections, which end with it. Threads: one.
#pragma once

#include "base/status.h"
#include "control/authentication.h"
#include "transport/tcp/tcp_transport.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace offpath::client {

// The service of the launcher. unsupported: it offers nothing of this kind.
class Board {
  public:
    virtual ~Board() = default;
    // Replaces what this rank published before, perhaps in an earlier process.
    virtual Status publish(std::span<const std::byte> record) = 0;
    // unavailable: that rank has not published anything.
    virtual Status look_up(std::uint32_t rank, std::vector<std::byte>& record) = 0;
};

// The place of a rank in the tree. Each subtree is a range of ranks; the lowest is its root.
struct TreePlace {
    std::uint32_t parent = 0;  // of rank 0: 0
    std::uint32_t end = 0;     // of the rank's own subtree, which begins with itself
    struct Child {
        std::uint32_t rank, end;
    };
    std::vector<Child> children;  // at most `fan_out`
};
TreePlace tree_place(std::uint32_t rank, std::uint32_t size, std::uint32_t fan_out);

class ExchangeTree {
  public:
    // A process keeps at most one connection more than this open.
    static constexpr std::uint32_t default_fan_out = 32;

    ExchangeTree(Board& board, std::uint32_t rank, std::uint32_t size,
                 std::uint32_t fan_out = default_fan_out);
    ~ExchangeTree();
    ExchangeTree(const ExchangeTree&) = delete;
    ExchangeTree& operator=(const ExchangeTree&) = delete;

    // Waits for all ranks, without a time limit where `limit` is 0. unsupported: the board says so. version:
    // a child's library speaks another version of the protocol. unavailable: the limit has passed. Call it
    // once.
    Status join(std::string& problem, std::chrono::nanoseconds limit = {});
    // After join(). `all`: size * mine.size() bytes, by rank. peer_lost: another process is gone.
    Status allgather(std::span<const std::byte> mine, std::span<std::byte> all);

  private:
    class Up;
    class Down;
    using Clock = std::chrono::steady_clock;
    bool reach_parent(Clock::time_point now, Status& status, std::string& problem);
    void rest(Clock::time_point until);
    std::uint32_t absent() const;
    void explain(Clock::time_point now);
    Status gather(std::size_t bytes, std::span<std::byte> all);
    template <typename Over, typename Lost>
    Status wait(Over&& over, Lost&& lost);

    Board& board_;
    const std::uint32_t rank_, size_;
    const TreePlace place_;
    std::unique_ptr<Down> down_;  // null: no children
    std::unique_ptr<Up> up_;      // null: no parent, or not connected to it now
    Clock::time_point begun_, try_again_;
    std::chrono::milliseconds pause_{1};
    bool explained_ = false;
};

}  // namespace offpath::client
