// Faulty: wraps another transport and injects faults, drawn from a seed. Messages arrive late and out of
// order, operations that would complete at once complete later, sends fail, endpoints are lost. The interface
// allows every one of these faults, so the layers above must handle them. Threads: as the wrapped transport.
#pragma once

#include "transport/transport.h"

#include <cstdint>
#include <memory>

namespace offpath::transport {

// Probabilities are 0 to 1 and are drawn for each message or operation.
struct FaultPlan {
    std::uint64_t seed = 1;
    double delay_message = 0;     // an incoming message waits; later ones overtake it
    double delay_completion = 0;  // a completion waits; an immediate `ok` becomes `in_progress`
    unsigned max_delay = 32;      // longest delay, in calls of progress()
    double fail_send = 0;         // post() or send() returns Status::memory and sends nothing
    double lose_endpoint = 0;     // the endpoint is lost at a post() or send()
    std::uint64_t lose_after =
        0;  // the endpoint of the n-th post() or send() is lost, counted from 1; 0: off
};

struct FaultCounters {
    std::uint64_t delayed_messages = 0, delayed_completions = 0, failed_sends = 0, lost_endpoints = 0;
};

class FaultyTransport : public Transport {
  public:
    // Loses an endpoint of this transport now, as if its peer had died.
    virtual void lose(Endpoint& endpoint) = 0;
    virtual const FaultCounters& counters() const = 0;
};

std::unique_ptr<FaultyTransport> make_faulty(std::unique_ptr<Transport> inner, const FaultPlan& plan);

}  // namespace offpath::transport
