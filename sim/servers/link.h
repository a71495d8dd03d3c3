// Link: one direction of a link, of a bus, or of the port of a switch: a server of bytes.
//
// With FIFO sharing, messages leave one after the other. A link may have a token bucket, as a shaper has:
// after a pause, that many bytes pass at once. With fair sharing, the messages that are there at the same
// time share the rate equally, and the bucket does not count. Ownership: borrows the queue. Threads: one.
#pragma once

#include "sim/clock/event_queue.h"

#include <queue>
#include <vector>

namespace offpath::sim {

enum class Sharing : std::uint8_t { fifo, fair };

class Link {
  public:
    // bytes_per_second: greater than 0. `latency` is added to each message, and takes nothing of the rate.
    Link(EventQueue& queue, double bytes_per_second, Time latency, Sharing sharing, double burst_bytes = 0)
        : queue_(queue),
          rate_(bytes_per_second),
          latency_(latency),
          burst_(from_seconds(burst_bytes / bytes_per_second)),
          sharing_(sharing) {}
    Link(Link&&) = default;

    struct Passage {
        Time head = 0, tail = 0;  // of its first and last byte at the other end
    };
    // FIFO: the message's first byte is here now, its last one at `tail`. Books the message, and returns when
    // both are at the other end.
    Passage pass(std::uint64_t bytes, Time tail);
    // Fair: the message is here now. Calls `action` when its last byte is at the other end.
    void share(std::uint64_t bytes, EventQueue::Action action, void* object, std::uint64_t argument);

    Sharing sharing() const { return sharing_; }
    Time latency() const { return latency_; }
    std::uint64_t bytes() const { return bytes_; }
    Time busy() const { return busy_; }

  private:
    struct Flow {
        double ends_at;  // of the bytes that each flow has had since the start
        std::uint64_t order;
        EventQueue::Action action;
        void* object;
        std::uint64_t argument;
        bool operator>(const Flow& other) const {
            return ends_at != other.ends_at ? ends_at > other.ends_at : order > other.order;
        }
    };
    void settle();
    void plan();
    static void look(void* link, std::uint64_t generation);

    EventQueue& queue_;
    double rate_;
    Time latency_;
    Time burst_;  // how long the bucket takes to fill
    Sharing sharing_;
    // When the bucket will be full again, counted without the burst. While that is less than the burst ahead,
    // bytes pass at once.
    Time free_at_ = 0, busy_ = 0;
    std::uint64_t bytes_ = 0;
    // fair
    double served_ = 0;  // bytes that a flow which was always there would have had
    Time settled_at_ = 0;
    std::uint64_t order_ = 0, generation_ = 0;
    std::priority_queue<Flow, std::vector<Flow>, std::greater<>> flows_;
};

}  // namespace offpath::sim
