// The command ring: bytes in shared memory, with one producer (a client) and one consumer (its proxy).
// Records are contiguous and start on cache lines; a pad record precedes a record that would cross the end.
// Ownership: neither side owns the memory. Threads: one per side.
//
// Pairs: the consumer's acquire load of `tail` pairs with the producer's store and makes the record visible.
// The producer's acquire load of `head` pairs with the consumer's release store and returns the room.
//
// The consumer trusts nothing in the ring: it keeps its own `head`, checks `tail` and every length, and
// copies each record out once before any code reads it.
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

    // Room for a record of `bytes` bytes (<= max_record_bytes). Empty while the ring is full.
    std::span<std::byte> reserve(std::size_t bytes);
    // Publishes the reserved record.
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
    // The next record, as a private copy that is valid until the following call. broken: the producer has
    // written invalid data; the ring is unusable.
    Next next(std::span<const std::byte>& record);
    bool has_records() const { return indices_->tail.load(std::memory_order_seq_cst) != head_; }

  private:
    RingIndices* indices_ = nullptr;
    std::span<const std::byte> data_;
    std::uint64_t head_ = 0, known_tail_ = 0;
    std::vector<std::byte> copy_;
};

}  // namespace offpath::control
