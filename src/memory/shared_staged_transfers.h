// SharedStagedTransfers: staged transfers through memory that proxy and client share. It cuts transfers into
// chunks and keeps as many in flight as there are slots, alternating between the two directions. It copies
// between slots and our memory, while the client's agent copies between slots and the client's memory.
// Ownership: it owns the area and the proxy's end of the bell. Threads: one.
#pragma once

#include "memory/staged_queue.h"
#include "memory/staging_area.h"

#include <memory>
#include <vector>

namespace offpath::memory {

class SharedStagedTransfers final : public StagedTransfers {
  public:
    // Errors: invalid (limits), memory, system.
    static Status create(std::uint32_t slots, std::uint32_t slot_bytes,
                         std::unique_ptr<StagedTransfers>& made, StagingFiles& for_client);

    Status start(StagingDirection direction, std::uint64_t host_address, std::byte* local, std::size_t bytes,
                 Completion* completion) override;
    unsigned progress() override;
    Status arm() override;
    int event_fd() const override { return bell_.get(); }
    Status health() const override { return health_; }
    void stop(Status reason) override;
    bool drained() const override { return queue_.live() == 0; }
    void abandon(Status reason) override;

  private:
    struct Chunk {
        StagedTransfer* transfer = nullptr;  // null: the slot is free
        std::size_t offset = 0;
        std::uint32_t bytes = 0;
    };

    SharedStagedTransfers() = default;
    bool accept(const StagingAnswer& answer);
    void issue();
    void issue_from(StagedTransfer& transfer);
    void disarm();

    StagingArea area_;
    File bell_;
    std::vector<Chunk> chunks_;              // by slot
    std::vector<std::uint16_t> free_slots_;  // a stack: the last one is used next
    StagedQueue queue_;
    bool host_turn_ = false;
    bool armed_ = false;
    Status health_ = Status::ok;
};

}  // namespace offpath::memory
