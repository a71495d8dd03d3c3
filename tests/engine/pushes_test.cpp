// On a byte stream, what steers waits behind the bulk that is in flight. So little of it is.
#include "world.h"

#include <gtest/gtest.h>

namespace offpath::testing {
namespace {

// The loopback as a byte stream that stands: it pushes, and its large sends never complete.
class Stream final : public transport::Transport {
  public:
    explicit Stream(std::unique_ptr<transport::Transport> inner) : inner_(std::move(inner)) {}
    std::size_t in_flight = 0;

    void set_handler(transport::Handler* handler) override { inner_->set_handler(handler); }
    std::vector<std::byte> address() const override { return inner_->address(); }
    Status connect(std::span<const std::byte> address, transport::Endpoint** endpoint) override {
        return inner_->connect(address, endpoint);
    }
    void disconnect(transport::Endpoint* endpoint) override { inner_->disconnect(endpoint); }
    Status post(transport::Endpoint& endpoint, std::span<const std::byte> header,
                std::span<const std::byte> payload) override {
        return inner_->post(endpoint, header, payload);
    }
    Status send(transport::Endpoint&, std::span<const std::byte>, const void*, std::size_t,
                Completion*) override {
        ++in_flight;
        return Status::in_progress;
    }
    std::size_t push_bytes(transport::Endpoint&) override { return 4096; }
    Status fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) override {
        return inner_->fetch(rendezvous, destination, bytes, completion);
    }
    void discard(void* rendezvous) override { inner_->discard(rendezvous); }
    unsigned progress() override { return inner_->progress(); }
    int event_fd() const override { return inner_->event_fd(); }
    Status arm() override { return inner_->arm(); }
    std::string describe() const override { return inner_->describe(); }

  private:
    std::unique_ptr<transport::Transport> inner_;
};

TEST(Pushes, AtMostTwoPiecesOfATransferAreInFlight) {
    Stream* sender = nullptr;
    WorldOptions options;
    options.engine.chunks_in_flight = 4;
    options.engine.send_bounces = 8;
    options.wrap = [&](std::unique_ptr<transport::Transport> inner, std::uint32_t proxy) {
        auto made = std::make_unique<Stream>(std::move(inner));
        if (proxy == 0) sender = made.get();
        return std::unique_ptr<transport::Transport>(std::move(made));
    };
    World world(options);
    std::vector<std::byte> from(1 << 20), to(1 << 20);
    Done sent, received;
    ASSERT_EQ(world.engine_of(0).keyed_send(world.team(0), World::range(from.data(), from.size()), 1, {1, 1},
                                            &sent),
              Status::in_progress);
    ASSERT_EQ(world.engine_of(1).keyed_recv(world.team(1), World::range(to.data(), to.size()), 0, {1, 1},
                                            nullptr, &received),
              Status::in_progress);
    for (int round = 0; round < 1000; ++round)
        world.round();
    EXPECT_EQ(sender->in_flight, 2u);
}

}  // namespace
}  // namespace offpath::testing
