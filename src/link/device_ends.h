// The parts of its link that a session receives: the channel and the transfers. Each keeps the peer alive.
// Threads: the proxy's.
#pragma once

#include "link/device_peer.h"

#include <memory>

namespace offpath::link {

class LinkProxyChannel final : public control::ProxyChannel {
  public:
    explicit LinkProxyChannel(std::shared_ptr<DevicePeer> peer);

    Next next(std::span<const std::byte>& record) override;
    void complete(std::uint32_t slot, Status status) override { complete(slot, status, 0, 0, 0); }
    void complete(std::uint32_t slot, Status status, std::uint32_t source, std::uint32_t tag,
                  std::uint64_t bytes) override;
    void wake() override;
    bool prepare_sleep() override { return !peer_->commands.has_records(); }

  private:
    std::shared_ptr<DevicePeer> peer_;
    std::vector<std::byte> items_;  // completions that have not been sent
};

class LinkTransfers final : public memory::StagedTransfers {
  public:
    explicit LinkTransfers(std::shared_ptr<DevicePeer> peer) : peer_(std::move(peer)) {}
    ~LinkTransfers() override { abandon(Status::canceled); }

    Status start(memory::StagingDirection direction, std::uint64_t host_address, std::byte* local,
                 std::size_t bytes, Completion* completion) override {
        return peer_->staging.start(direction, host_address, local, bytes, completion);
    }
    bool copies_within() const override { return true; }
    Status copy(std::uint64_t from, std::uint64_t to, std::size_t bytes, Completion* completion) override {
        return peer_->staging.copy(from, to, bytes, completion);
    }
    unsigned progress() override { return peer_->staging.progress(); }
    Status arm() override { return peer_->staging.has_work() ? Status::retry : Status::ok; }
    int event_fd() const override { return -1; }
    Status health() const override;
    void stop(Status reason) override { peer_->staging.stop(reason); }
    bool drained() const override { return peer_->staging.drained(); }
    void abandon(Status reason) override;

  private:
    std::shared_ptr<DevicePeer> peer_;
};

}  // namespace offpath::link
