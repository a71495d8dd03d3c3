#include "control/ring.h"

#include "control/commands.h"

#include <cstring>

namespace offpath::control {
namespace {

constexpr std::uint64_t round_up(std::uint64_t bytes) {
    return (bytes + cache_line - 1) & ~std::uint64_t{cache_line - 1};
}

struct RecordHeader {
    std::uint32_t bytes;
    std::uint16_t kind;
    std::uint16_t zero;
};
static_assert(sizeof(RecordHeader) == record_header_bytes);

}  // namespace

std::span<std::byte> RingProducer::reserve(std::size_t bytes) {
    const std::uint64_t size = round_up(bytes);
    const std::uint64_t place = tail_ & (data_.size() - 1);
    const std::uint64_t pad = place + size > data_.size() ? data_.size() - place : 0;
    if (tail_ + pad + size - known_head_ > data_.size()) {
        known_head_ = indices_->head.load(std::memory_order_acquire);
        if (tail_ + pad + size - known_head_ > data_.size()) return {};
    }
    if (pad != 0) {
        const RecordHeader header{static_cast<std::uint32_t>(pad), pad_kind, 0};
        std::memcpy(data_.data() + place, &header, sizeof header);
    }
    reserved_ = pad + size;
    return data_.subspan((tail_ + pad) & (data_.size() - 1), bytes);
}

void RingProducer::commit() {
    tail_ += reserved_;
    reserved_ = 0;
    // A release store is not enough: a producer that then checks for a sleeping consumer must not read that
    // state before this store (channel.h).
    indices_->tail.store(tail_, std::memory_order_seq_cst);
}

RingConsumer::RingConsumer(RingIndices* indices, std::span<const std::byte> data)
    : indices_(indices), data_(data), copy_(max_record_bytes) {}

RingConsumer::Next RingConsumer::next(std::span<const std::byte>& record) {
    while (true) {
        if (head_ == known_tail_) {
            known_tail_ = indices_->tail.load(std::memory_order_acquire);
            if (head_ == known_tail_) return Next::none;
            if (known_tail_ - head_ > data_.size() || known_tail_ % cache_line != 0) return Next::broken;
        }
        const std::uint64_t place = head_ & (data_.size() - 1);
        const std::uint64_t there = std::min(known_tail_ - head_, data_.size() - place);
        RecordHeader header;
        std::memcpy(&header, data_.data() + place, sizeof header);
        const std::uint64_t size = round_up(header.bytes);
        if (header.bytes < sizeof header || size > there) return Next::broken;
        const bool pad = header.kind == pad_kind;
        if (pad ? place + size != data_.size() : header.bytes > max_record_bytes) return Next::broken;
        if (!pad) {
            std::memcpy(copy_.data(), &header, sizeof header);
            std::memcpy(copy_.data() + sizeof header, data_.data() + place + sizeof header,
                        header.bytes - sizeof header);
            record = std::span(copy_).first(header.bytes);
        }
        head_ += size;
        indices_->head.store(head_, std::memory_order_release);
        if (!pad) return Next::record;
    }
}

}  // namespace offpath::control
