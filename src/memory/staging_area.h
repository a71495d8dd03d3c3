// StagingArea: the memory that a proxy and a client's agent share for staged transfers. It holds two
// single-producer rings (requests to the agent, answers to the proxy) and the slots that chunks pass through.
//
// Invariant: each slot has at most one request in flight and each ring has an entry for every slot, so a ring
// never overflows.
//
// Layout version 1: Header, then the slots from slots_offset on, each slot_bytes long. The numbers of slots
// and slot_bytes fix all offsets. Native byte order: both sides run on one machine.
//
// Threads: each ring has one producer and one consumer. A consumer's acquire load of `tail` pairs with the
// producer's release store. The sleep flags are sequentially consistent with the tails: a side that sleeps
// sets its flag and then reads the tail; a producer moves the tail and then reads the flag. Trust: the proxy
// trusts nothing that it reads here: it masks indices and checks counts and answers.
#pragma once

#include "memory/file.h"
#include "memory/staged_transfers.h"
#include "memory/staging_files.h"

#include <atomic>
#include <cstdint>
#include <string>

namespace offpath::memory {

struct StagingRequest {
    std::uint64_t host_address = 0;
    std::uint32_t bytes = 0;
    std::uint16_t slot = 0;
    StagingDirection direction = StagingDirection::to_device;
    std::uint8_t reserved = 0;
};
static_assert(sizeof(StagingRequest) == 16);

struct StagingAnswer {
    std::uint16_t slot = 0;
    std::uint16_t reserved = 0;
    std::int32_t status = 0;  // offpath::Status
};
static_assert(sizeof(StagingAnswer) == 8);

class StagingArea {
  public:
    static constexpr std::uint32_t max_slots = 64, min_slots = 2;
    static constexpr std::uint32_t min_slot_bytes = 4 << 10, max_slot_bytes = 16 << 20;

    StagingArea() = default;
    // Proxy side. `bell` becomes the proxy's end. Errors: invalid (limits), memory, system.
    static Status create(std::uint32_t slots, std::uint32_t slot_bytes, StagingArea& area, File& bell,
                         StagingFiles& for_client);
    // Agent side. Errors: invalid with `problem`, memory, system.
    static Status open(int fd, StagingArea& area, std::string& problem);

    std::uint32_t slots() const { return slots_; }
    std::uint32_t slot_bytes() const { return slot_bytes_; }
    std::byte* slot(std::uint32_t index) const { return mapping_.data() + slot_offset(index); }
    // The slot's offset in the memory file.
    std::uint64_t slot_offset(std::uint32_t index) const;

    // Proxy side.
    void post(const StagingRequest& request);
    // ok: `answer` is the next one. retry: there is none. protocol: the ring's contents are invalid.
    Status take(StagingAnswer& answer);
    bool has_answers() const;
    // True once after agent_rests(); the caller must then ring.
    bool agent_must_be_woken();
    void proxy_rests(bool resting);

    // Agent side.
    void post(const StagingAnswer& answer);
    bool take(StagingRequest& request);
    bool proxy_must_be_woken();
    // Announces that the agent will sleep. False: there are requests, so it must not sleep.
    bool agent_rests();

  private:
    struct Header;
    Header& header() const;
    static std::size_t area_bytes(std::uint32_t slots, std::uint32_t slot_bytes);

    Mapping mapping_;
    std::uint32_t slots_ = 0, slot_bytes_ = 0;
    // This side's own positions in the rings that it produces and consumes. The other side cannot change
    // them.
    std::uint32_t produced_ = 0, consumed_ = 0;
};

// ring() wakes the other end and never blocks. wait_for_ring() blocks until the other end rings; false: it is
// closed.
void ring(int bell);
bool wait_for_ring(int bell);
// Consumes the rings received so far; never blocks. False: the other end is closed.
bool silence(int bell);

}  // namespace offpath::memory
