// ExchangeTree: allgathers among the processes of a job over a tree of TCP connections, for launchers that
// can tell a process what another one has published but cannot be relied on to count the processes of a
// fence. Every process with children publishes where it listens; the others look their parent up.
//
// Several programs may run in turn as the same ranks. What is published may therefore come from a process
// that is gone, or that is in an earlier program still. Neither takes a call, so whoever looks up asks again
// until the process of its own program has published. join() ends when the whole tree stands; a process that
// is lost before is replaced by the next one that comes as the same rank. A loss after join() is an error.
//
// Trust: the listener's address and a secret are published, and both sides prove that they know them before
// data go over a connection. Ownership: it owns its connections, which end with it. Threads: one.
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

// What the launcher offers. unsupported: nothing of that kind.
class Board {
  public:
    virtual ~Board() = default;
    // In the place of what this rank has published before, in an earlier process perhaps.
    virtual Status publish(std::span<const std::byte> record) = 0;
    // unavailable: that rank has not published anything.
    virtual Status look_up(std::uint32_t rank, std::vector<std::byte>& record) = 0;
};

// Where a rank is in the tree. Each subtree is a range of ranks, of which the lowest is its root.
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
    // What a process keeps open at most is one more.
    static constexpr std::uint32_t default_fan_out = 32;

    ExchangeTree(Board& board, std::uint32_t rank, std::uint32_t size,
                 std::uint32_t fan_out = default_fan_out);
    ~ExchangeTree();
    ExchangeTree(const ExchangeTree&) = delete;
    ExchangeTree& operator=(const ExchangeTree&) = delete;

    // Waits for all ranks, as long as it takes. unsupported: what the board says. Once.
    Status join(std::string& problem);
    // `all`: size * mine.size() bytes, by rank. After join(). peer_lost: another process is gone.
    Status allgather(std::span<const std::byte> mine, std::span<std::byte> all);

  private:
    class Up;
    class Down;
    using Clock = std::chrono::steady_clock;
    bool reach_parent(Clock::time_point now, Status& status, std::string& problem);
    void rest(Clock::time_point until);
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
