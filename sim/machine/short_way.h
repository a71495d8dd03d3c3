// ShortWay: the connections between ranks and the proxies of other ranks, in virtual time. A rank's own core
// writes its requests into a socket, and the target's proxy executes them at once (rma/direct.h).
//
// Ownership: borrows the cluster; owns the messages on their way. Threads: one.
#pragma once

#include "engine/onesided/calls.h"
#include "sim/clock/event_queue.h"

#include <cstdint>
#include <span>
#include <vector>

namespace offpath::sim {

class Cluster;
class Worker;

class ShortWay {
  public:
    explicit ShortWay(Cluster& cluster) : cluster_(cluster) {}

    // Bytes of a message with these requests, and of its answer.
    static std::uint64_t bytes_of(std::span<const engine::DirectAccess> requests);
    static std::uint64_t answer_bytes_of(std::span<const engine::DirectAccess> requests);

    // A message of `rank` leaves its core at `departs`. The requests need no operands of their own.
    // `answered` is called when the answer is at the rank's node.
    void ask(std::uint32_t rank, Worker& target, std::vector<engine::DirectAccess> requests, Time departs,
             Completion* answered);

  private:
    struct Message {
        ShortWay* way = nullptr;
        std::uint32_t rank = 0;
        Worker* target = nullptr;
        std::vector<engine::DirectAccess> requests;
        Completion* answered = nullptr;
        Status status = Status::ok;
    };
    static void reach_target(void* message, std::uint64_t);
    static void reach_rank(void* message, std::uint64_t);
    void perform(Message& message);

    Cluster& cluster_;
};

}  // namespace offpath::sim
