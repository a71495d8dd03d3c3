// The command ring: bytes in shared memory, one producer (a client), one consumer (its proxy). Records are
// contiguous and start on cache lines; a record that would cross the end is preceded by a pad record. Memory:
// neither side owns it. Threads: one per side.
//
// Pairs: the producer's store of `tail` makes the record visible to the consumer's acquire load; the
// consumer's release store of `head` hands the room back to the producer's acquire load.
//
// The consumer trusts nothing that lies in the ring: it keeps `head` for itself, checks `tail` and every
// length, and copies a record out, once, before anybody looks at it.
#pragma once

#include "control/commands.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace offpath::control {

constexpr std::size_t cache_line = 64;
constexpr std::uint16_t pad_kind = 0xffff;

struct RingIndices {
    alignas(cache_line) std::atomic<std::uint64_t> tail;  // bytes ever produced
    alignas(cache_line) std::atomic<std::uint64_t> head;  // bytes ever consumed
};

class RingProducer {
  public:
    RingProducer() = default;
    // `data`: a power of two of bytes, at least 4 * max_record_bytes.
    RingProducer(RingIndices* indices, std::span<std::byte> data) : indices_(indices), data_(data) {}

    // Room for a record of `bytes` bytes (<= max_record_bytes), or an empty span while the ring is full.
    std::span<std::byte> reserve(std::size_t bytes);
    // Hands the reserved record over.
    void commit();

  private:
    RingIndices* indices_ = nullptr;
    std::span<std::byte> data_;
    std::uint64_t tail_ = 0, reserved_ = 0, known_head_ = 0;
};

class RingConsumer {
  public:
    RingConsumer() = default;
    RingConsumer(RingIndices* indices, std::span<const std::byte> data);

    using Next = NextRecord;
    // The next record, a private copy that stays valid until the following call. broken: the producer has
    // written nonsense; the ring is of no use any more.
    Next next(std::span<const std::byte>& record);
    bool has_records() const { return indices_->tail.load(std::memory_order_seq_cst) != head_; }

  private:
    RingIndices* indices_ = nullptr;
    std::span<const std::byte> data_;
    std::uint64_t head_ = 0, known_tail_ = 0;
    std::vector<std::byte> copy_;
};

}  // namespace offpath::control
