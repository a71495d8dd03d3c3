// Loopback: transports inside one process, joined by a hub. A payload is copied once. It serves tests of the
// layers above, the host fallback, and under ucx/ peers in the same process. It is deterministic, so a
// failure can be reproduced from its seed.
//
// Ownership: the hub must outlive its transports. Destroying a transport looks like the death of a peer: the
// other transports lose their endpoints to it. Threads: one per transport; transports of one hub may run in
// different threads. A hub has one mutex, never held while a handler or completion runs or a payload is
// copied.
#pragma once

#include "transport/transport.h"

#include <cstdint>
#include <memory>

namespace offpath::transport {

struct LoopbackConfig {
    enum class Order {
        fifo,     // messages are handed over as they were sent
        shuffled  // in an order drawn from `seed`, as the interface allows
    };
    Order order = Order::fifo;
    std::uint64_t seed = 1;
    std::size_t eager_bytes = 8 << 10;  // send() payloads up to this come with the message; 0: none does
    unsigned events_per_progress = 64;
};

class LoopbackHub {
  public:
    explicit LoopbackHub(const LoopbackConfig& config = {});
    ~LoopbackHub();
    LoopbackHub(const LoopbackHub&) = delete;
    LoopbackHub& operator=(const LoopbackHub&) = delete;

    // Makes another transport of this hub. Thread-safe.
    std::unique_ptr<Transport> join();

    struct Impl;

  private:
    std::unique_ptr<Impl> impl_;
};

}  // namespace offpath::transport
