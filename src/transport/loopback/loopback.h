// Loopback: transports inside one process, joined by a hub; a payload is copied once. For tests of the layers
// above, for the host fallback, and under ucx/ for peers in the same process. Deterministic, so that a
// failure comes back with its seed. Ownership: the hub must outlive its transports. A transport that is
// destroyed is a peer that died: the others' endpoints to it are lost. Threads: one per transport; transports
// of one hub may run in different threads (one mutex a hub, never held while a handler or a completion runs
// or a payload is copied).
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

    // Another transport of this hub. Thread-safe.
    std::unique_ptr<Transport> join();

    struct Impl;

  private:
    std::unique_ptr<Impl> impl_;
};

}  // namespace offpath::transport
