// Transport: what the engine needs from a network: active messages with a header and a payload. The receiver
// may name the payload's destination once it is ready (rendezvous).
//
// Implementations: ucx/ (the product), tcp/ (links that have nothing better), loopback/ (in one process, for
// tests and the host fallback), encrypted/ (wraps another one, for networks that are not trusted), faulty/
// (wraps another one; loses, delays and fails operations).
//
// Ownership: a transport owns its endpoints. Threads: one thread per transport object. Order: messages over
// one endpoint reach the handler in any order; a caller that needs order numbers them.
#pragma once

#include "base/completion.h"
#include "base/network_place.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace offpath::transport {

// A connection to another proxy. Transport::connect makes it; disconnect, or the end of the transport, ends
// it.
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
    // The peer is gone. Every operation in flight on the endpoint completes with its own error. The endpoint
    // stays valid until disconnect.
    virtual void on_endpoint_lost(Endpoint& endpoint) = 0;
};

class Transport {
  public:
    virtual ~Transport() = default;

    // Every transport carries at least max_header header bytes, and its post() at least max_post payload
    // bytes.
    static constexpr std::size_t max_header = 128;
    // A transport that reaches other processes carries headers of this size, because an encrypted message has
    // a longer one (encrypted/).
    static constexpr std::size_t max_wire_header = max_header + 80;
    static constexpr std::size_t max_post = 8 << 10;

    virtual void set_handler(Handler* handler) = 0;
    // The bytes that peers pass to connect().
    virtual std::vector<std::byte> address() const = 0;
    virtual Status connect(std::span<const std::byte> address, Endpoint** endpoint) = 0;
    virtual void disconnect(Endpoint* endpoint) = 0;

    // Sends header and a small payload (at most max_post); both are copied before it returns. Returns ok or
    // an error. A later error is reported by on_endpoint_lost.
    virtual Status post(Endpoint& endpoint, std::span<const std::byte> header,
                        std::span<const std::byte> payload) = 0;
    // Sends header (copied) and a payload of any size, which must stay in place until completion.
    virtual Status send(Endpoint& endpoint, std::span<const std::byte> header, const void* payload,
                        std::size_t bytes, Completion* completion) = 0;
    // The largest payload for which send() should push instead of letting the receiver fetch; 0: never push.
    // Byte streams need this: the receiver's answer to a rendezvous would wait behind all payload in the
    // opposite direction.
    virtual std::size_t push_bytes(Endpoint&) { return 0; }
    // From hold() to let_go(), messages posted to the endpoint may be delayed so that they leave together.
    virtual void hold(Endpoint&) {}
    virtual void let_go(Endpoint&) {}
    // Copies the payload of a rendezvous message into `destination`. `bytes` is its whole size.
    virtual Status fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) = 0;
    // Like send() and fetch(), but for memory that only the network card reaches. The endpoint takes no
    // smaller payload than least_from_network(); SIZE_MAX: none. Where fetches_into_network() is false,
    // fetch_into() must not be called.
    virtual std::size_t least_from_network(const Endpoint&) const { return SIZE_MAX; }
    virtual bool fetches_into_network() const { return false; }
    virtual Status send_from(Endpoint&, std::span<const std::byte> /*header*/,
                             const NetworkPlace& /*payload*/, std::size_t /*bytes*/,
                             Completion* /*completion*/) {
        return Status::unsupported;
    }
    virtual Status fetch_into(void* /*rendezvous*/, const NetworkPlace& /*destination*/,
                              std::size_t /*bytes*/, Completion* /*completion*/) {
        return Status::unsupported;
    }
    // How many posted messages have not left yet because the connection has no room; 0 where that is not
    // known.
    virtual std::size_t unsent(const Endpoint&) const { return 0; }
    // Whether only byte streams lead to other nodes.
    virtual bool only_streams() const { return false; }
    // Whether the transport detects memory that is not mapped. If so, send() and fetch() of more than
    // max_post bytes end with access on both sides, and nothing else is harmed. Otherwise such memory must
    // not be passed.
    virtual bool checks_memory() const { return false; }
    // Discards the payload.
    virtual void discard(void* rendezvous) = 0;

    // Advances all operations without blocking. Returns how many events it handled; 0: nothing to do.
    virtual unsigned progress() = 0;
    // To sleep: arm() returns ok when event_fd() will become readable at the next event, and retry when there
    // are events already.
    virtual int event_fd() const = 0;
    virtual Status arm() = 0;

    // Describes the transport to people, e.g. "UCX 1.22 tcp".
    virtual std::string describe() const = 0;
};

}  // namespace offpath::transport
