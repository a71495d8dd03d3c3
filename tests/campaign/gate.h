// Gate: a transport of the campaign: the loopback with faults, whose connections can be broken from outside.
// To check the campaign itself, it can also do what no transport may do (Flaw). Threads: one.
#pragma once

#include "../transport/forwarding.h"
#include "transport/faulty/faulty.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace offpath::campaign {

// What is wrong with the network: of each proxy's messages, the n-th is lost or comes twice, or the first
// with a payload from then on has another byte in it.
struct Flaw {
    enum class Kind : std::uint8_t { none, lost, twice, other_byte } kind = Kind::none;
    std::uint64_t at = 0;
};

class Gate final : public transport::Forwarding<transport::FaultyTransport> {
  public:
    Gate(std::unique_ptr<transport::FaultyTransport> inner, Flaw flaw)
        : Forwarding(std::move(inner)), flaw_(flaw) {}

    // Breaks all connections to the transport with that address.
    void lose(std::span<const std::byte> address);

    Status connect(std::span<const std::byte> address, transport::Endpoint** endpoint) override;
    void disconnect(transport::Endpoint* endpoint) override;
    Status post(transport::Endpoint& endpoint, std::span<const std::byte> header,
                std::span<const std::byte> payload) override;

  private:
    struct Connection {
        std::vector<std::byte> address;
        transport::Endpoint* endpoint = nullptr;
    };
    std::vector<Connection> connections_;
    const Flaw flaw_;
    std::uint64_t posts_ = 0;
    bool shown_ = false;
};

}  // namespace offpath::campaign
