// On a byte stream, what steers waits behind the bulk that is in flight. So little of it is.
#include "../transport/forwarding.h"
#include "world.h"

#include <gtest/gtest.h>

namespace offpath::testing {
namespace {

// The loopback as a byte stream that stands: it pushes, and its large sends never complete.
class Stream final : public transport::Forwarding<> {
  public:
    using Forwarding::Forwarding;
    std::size_t in_flight = 0;

    Status send(transport::Endpoint&, std::span<const std::byte>, const void*, std::size_t,
                Completion*) override {
        ++in_flight;
        return Status::in_progress;
    }
    std::size_t push_bytes(transport::Endpoint&) override { return 4096; }
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
