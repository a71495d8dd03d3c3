// Forwarding: a transport that passes everything on to another one. Tests derive from it what behaves
// differently.
#pragma once

#include "transport/transport.h"

#include <memory>
#include <utility>

namespace offpath::transport {

template <typename Inner = Transport>
class Forwarding : public Transport {
  public:
    explicit Forwarding(std::unique_ptr<Inner> inner) : inner_(std::move(inner)) {}

    void set_handler(Handler* handler) override { inner_->set_handler(handler); }
    std::vector<std::byte> address() const override { return inner_->address(); }
    Status connect(std::span<const std::byte> address, Endpoint** endpoint) override {
        return inner_->connect(address, endpoint);
    }
    void disconnect(Endpoint* endpoint) override { inner_->disconnect(endpoint); }
    Status post(Endpoint& endpoint, std::span<const std::byte> header,
                std::span<const std::byte> payload) override {
        return inner_->post(endpoint, header, payload);
    }
    Status send(Endpoint& endpoint, std::span<const std::byte> header, const void* payload, std::size_t bytes,
                Completion* completion) override {
        return inner_->send(endpoint, header, payload, bytes, completion);
    }
    std::size_t push_bytes(Endpoint& endpoint) override { return inner_->push_bytes(endpoint); }
    Status fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) override {
        return inner_->fetch(rendezvous, destination, bytes, completion);
    }
    bool checks_memory() const override { return inner_->checks_memory(); }
    void discard(void* rendezvous) override { inner_->discard(rendezvous); }
    unsigned progress() override { return inner_->progress(); }
    int event_fd() const override { return inner_->event_fd(); }
    Status arm() override { return inner_->arm(); }
    std::string describe() const override { return inner_->describe(); }

  protected:
    const std::unique_ptr<Inner> inner_;
};

}  // namespace offpath::transport
