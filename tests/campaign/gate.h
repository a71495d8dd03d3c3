// Gate: a transport of the campaign: the loopback with faults, whose connections can be broken from outside.
// To check the campaign itself, it can also do what no transport may do (Flaw). Threads: one.
#pragma once

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

class Gate final : public transport::Transport {
  public:
    Gate(std::unique_ptr<transport::FaultyTransport> inner, Flaw flaw)
        : inner_(std::move(inner)), flaw_(flaw) {}

    // Breaks all connections to the transport with that address.
    void lose(std::span<const std::byte> address);

    void set_handler(transport::Handler* handler) override { inner_->set_handler(handler); }
    std::vector<std::byte> address() const override { return inner_->address(); }
    Status connect(std::span<const std::byte> address, transport::Endpoint** endpoint) override;
    void disconnect(transport::Endpoint* endpoint) override;
    Status post(transport::Endpoint& endpoint, std::span<const std::byte> header,
                std::span<const std::byte> payload) override;
    Status send(transport::Endpoint& endpoint, std::span<const std::byte> header, const void* payload,
                std::size_t bytes, Completion* completion) override {
        return inner_->send(endpoint, header, payload, bytes, completion);
    }
    std::size_t push_bytes(transport::Endpoint& endpoint) override { return inner_->push_bytes(endpoint); }
    Status fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) override {
        return inner_->fetch(rendezvous, destination, bytes, completion);
    }
    bool checks_memory() const override { return inner_->checks_memory(); }
    void discard(void* rendezvous) override { inner_->discard(rendezvous); }
    unsigned progress() override { return inner_->progress(); }
    int event_fd() const override { return inner_->event_fd(); }
    Status arm() override { return inner_->arm(); }
    std::string describe() const override { return inner_->describe(); }

  private:
    struct Connection {
        std::vector<std::byte> address;
        transport::Endpoint* endpoint = nullptr;
    };
    std::unique_ptr<transport::FaultyTransport> inner_;
    std::vector<Connection> connections_;
    const Flaw flaw_;
    std::uint64_t posts_ = 0;
    bool shown_ = false;
};

}  // namespace offpath::campaign
