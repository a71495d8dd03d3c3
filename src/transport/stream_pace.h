// StreamPace: how fast the sockets of a byte stream may hand their data to the network.
//
// Without a pace, the kernel lets a socket fill the queue of the network device with megabytes. The messages
// of other sockets wait behind them, and with them those that steer: at 1 Gbit/s, 1 MiB takes 8 ms. A socket
// whose data stand in a queue for more than a millisecond is therefore held to a little more than its network
// delivers. The queue then shrinks to about a millisecond, and the link stays busy. A pace that has become
// too slow grows by a quarter at each look, until it is gone. A peer that gets no core takes nothing for a
// while, which says little about the network. So no pace is below slowest_pace: nobody looks at a connection
// whose last data are in the kernel, and they must not stay there for seconds.
//
// Threads: one.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace offpath::transport {

constexpr std::uint64_t no_pace = UINT64_MAX;
constexpr std::uint64_t slowest_pace = 12'500'000;  // 100 Mbit/s

// What the kernel knows of a connection (TCP_INFO).
struct StreamSample {
    std::uint64_t now_ns = 0;
    std::uint64_t acknowledged = 0;  // bytes, since the connection was made
    bool unsent = false;             // the kernel has data that it has not sent
    std::uint32_t rtt_us = 0, min_rtt_us = 0;
};

// The pace of one connection.
class Pacer {
  public:
    // The pace after `sample`, in bytes per second.
    std::uint64_t pace_after(const StreamSample& sample);

    // Samples that are further apart show no rate, because the connection may have rested between them.
    static constexpr std::uint64_t most_apart_ns = 12'000'000;

  private:
    StreamSample last_;
    // What the network has delivered between two samples. Other work may keep the sender from its core, so
    // the largest value counts.
    std::array<std::uint64_t, 16> rates_{};
    std::size_t next_ = 0;
    std::uint64_t pace_ = no_pace;
};

class StreamPace {
  public:
    // A large payload has been handed to a connection in the epoll set `epoll`, or in a set within it.
    void sent(int epoll);
    // Looks at these connections now and then while large payloads are sent. To be called often.
    void keep(int epoll) {
        if (active_) look_again(epoll);
    }

  private:
    using Clock = std::chrono::steady_clock;
    struct Stream {
        int socket = -1;
        Pacer pacer;
        std::uint64_t pace = no_pace;  // the socket's
    };
    void look_again(int epoll);
    void find_streams(int epoll);

    std::vector<Stream> streams_;
    std::vector<int> found_;
    std::size_t next_ = 0;  // the streams take turns
    bool active_ = false;
    Clock::time_point sent_{}, looked_{}, searched_{};
};

}  // namespace offpath::transport
