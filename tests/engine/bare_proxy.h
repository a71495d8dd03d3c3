// BareProxy: a test uses it to act as a proxy towards an engine on the same hub. It sends any message, with
// or without a pass, and records what it receives.
#pragma once

#include "engine/engine.h"
#include "engine/impl.h"
#include "transport/loopback/loopback.h"

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace offpath::testing {

struct BareJob {
    engine::JobId id;
    engine::JobSecret secret{};
};

class BareProxy final : transport::Handler {
  public:
    BareProxy(transport::LoopbackHub& hub, engine::ProxyId id) : id_(id), transport_(hub.join()) {
        transport_->set_handler(this);
    }
    ~BareProxy() override { transport_->set_handler(nullptr); }

    engine::ProxyId id() const { return id_; }
    std::vector<std::byte> address() const { return transport_->address(); }
    void connect(std::span<const std::byte> address) { (void)transport_->connect(address, &endpoint_); }

    // Sends to the engine of proxy 1, with that proxy's pass for that job.
    template <typename Header>
    Status say(const BareJob& job, const Header& header, std::span<const std::byte> payload = {}) {
        return say_with({id_, engine::pass_of(job.secret, job.id, id_, 1)}, header, payload);
    }
    template <typename Header>
    Status say_with(const engine::Stamp& stamp, const Header& header,
                    std::span<const std::byte> payload = {}) {
        std::vector<std::byte> bytes(sizeof stamp + sizeof header);
        std::memcpy(bytes.data(), &stamp, sizeof stamp);
        std::memcpy(bytes.data() + sizeof stamp, &header, sizeof header);
        return transport_->post(*endpoint_, bytes, payload);
    }
    template <typename Header>
    Status say_without_stamp(const Header& header, std::span<const std::byte> payload = {}) {
        return transport_->post(*endpoint_, engine::bytes_of(header), payload);
    }

    void progress() { transport_->progress(); }
    // Returns the last message of this kind that arrived.
    template <typename Header>
    std::optional<Header> heard(engine::Kind kind) const {
        std::optional<Header> found;
        for (const auto& message : heard_) {
            Header header{};
            if (engine::kind_of(message) == kind && engine::read(message, header)) found = header;
        }
        return found;
    }

  private:
    void on_message(const transport::Incoming& message) override {
        const auto header = message.header.subspan(sizeof(engine::Stamp));
        heard_.emplace_back(header.begin(), header.end());
        if (message.rendezvous != nullptr) transport_->discard(message.rendezvous);
    }
    void on_endpoint_lost(transport::Endpoint&) override {}

    const engine::ProxyId id_;
    std::unique_ptr<transport::Transport> transport_;
    transport::Endpoint* endpoint_ = nullptr;
    std::vector<std::vector<std::byte>> heard_;
};

}  // namespace offpath::testing
