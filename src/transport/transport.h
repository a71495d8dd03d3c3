// Transport: what the engine needs from a network. Active messages with a header and a payload, the payload
// fetched into a buffer that the receiver names once it is ready (rendezvous). Implementations: ucx/ (the
// product), tcp/ (links that have nothing better), loopback/ (in one process, for tests and for the host
// fallback), faulty/ (wraps another and loses, delays, fails). Ownership: a transport owns its endpoints.
// Threads: one thread per transport object; only wake() may come from others. Order: messages over one
// endpoint are handed to the handler in any order; whoever needs order numbers them.
#pragma once

#include "base/completion.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace offpath::transport {

// A connection to another proxy. Made by Transport::connect, ended by disconnect or with the transport.
class Endpoint {
  public:
    virtual ~Endpoint() = default;
};

// A message that arrives. `header` and `data` are valid during on_message only.
struct Incoming {
    std::span<const std::byte> header;
    std::size_t bytes = 0;  // of the payload
    const std::byte* data =
        nullptr;                 // the payload if it has come with the message; null: fetch or discard it
    void* rendezvous = nullptr;  // names the payload for fetch() or discard(), exactly one of which must
                                 // follow, now or later
};

class Handler {
  public:
    virtual ~Handler() = default;
    virtual void on_message(const Incoming& message) = 0;
    // The other side is gone. Every operation in flight on it completes with an error of its own. The
    // endpoint stays valid until disconnect.
    virtual void on_endpoint_lost(Endpoint& endpoint) = 0;
};

class Transport {
  public:
    virtual ~Transport() = default;

    // Header bytes a message can carry at least; payload bytes that post() takes at least.
    static constexpr std::size_t max_header = 128;
    static constexpr std::size_t max_post = 8 << 10;

    virtual void set_handler(Handler* handler) = 0;
    // What others pass to connect().
    virtual std::vector<std::byte> address() const = 0;
    virtual Status connect(std::span<const std::byte> address, Endpoint** endpoint) = 0;
    virtual void disconnect(Endpoint* endpoint) = 0;

    // Sends header and a small payload (<= max_post), both copied before it returns. ok or an error; errors
    // after that end in on_endpoint_lost.
    virtual Status post(Endpoint& endpoint, std::span<const std::byte> header,
                        std::span<const std::byte> payload) = 0;
    // Sends header (copied) and a payload of any size, which stays in place until completion.
    virtual Status send(Endpoint& endpoint, std::span<const std::byte> header, const void* payload,
                        std::size_t bytes, Completion* completion) = 0;
    // The largest payload that send() had better push to this endpoint than let the receiver fetch; 0: let it
    // fetch. A byte stream is such a case: the receiver's answer to a rendezvous would wait behind all the
    // payload that goes the other way.
    virtual std::size_t push_bytes(Endpoint&) { return 0; }
    // From hold() to let_go(), messages that are posted to the endpoint may wait for each other, to leave
    // together.
    virtual void hold(Endpoint&) {}
    virtual void let_go(Endpoint&) {}
    // Gets the payload of a rendezvous message, `bytes` of it (its whole size), into `destination`.
    virtual Status fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) = 0;
    // Messages that were posted and have not left yet, for want of room in the connection; 0 where that is
    // not known.
    virtual std::size_t unsent(const Endpoint&) const { return 0; }
    // Whether nothing better than byte streams leads to other nodes.
    virtual bool only_streams() const { return false; }
    // Whether send() and fetch() of more than max_post bytes end with access, and harm nothing else, where
    // memory is not there; the other side's operation ends alike. Elsewhere such memory must not be passed.
    virtual bool checks_memory() const { return false; }
    // Gives the payload up.
    virtual void discard(void* rendezvous) = 0;

    // Moves everything on, without blocking. Returns how many events there were; 0: nothing to do.
    virtual unsigned progress() = 0;
    // To sleep: arm() returns ok if event_fd() will turn readable at the next event, retry if there are
    // events already.
    virtual int event_fd() const = 0;
    virtual Status arm() = 0;

    // For people: e.g. "UCX 1.22 tcp".
    virtual std::string describe() const = 0;
};

}  // namespace offpath::transport
