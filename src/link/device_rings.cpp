#include "link/device_rings.h"

#include "link/rings.h"

#include <array>
#include <atomic>
#include <cstring>
#include <utility>

namespace offpath::link {
namespace {

using control::CompletionEntry;

std::uint64_t place_of(const CompletionItem& item) {
    return entries_offset + std::uint64_t{item.slot} * sizeof(CompletionEntry);
}

template <typename Value>
std::array<std::byte, sizeof(Value)> bytes_of(Value value) {
    std::array<std::byte, sizeof(Value)> bytes;
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

}  // namespace

DeviceRings::DeviceRings(std::unique_ptr<transport::Window> own,
                         std::unique_ptr<transport::RemoteWindow> host, Events events)
    : own_(std::move(own)), host_(std::move(host)), events_(std::move(events)) {
    function = &DeviceRings::on_flushed;
}

void DeviceRings::start() {
    if (host_->put(open_offset, bytes_of(std::uint32_t{1})) != Status::ok)
        fail();
    else if (flush())
        settle();
}

bool DeviceRings::host_sleeps() const {
    const auto& word = *reinterpret_cast<const std::atomic<std::uint32_t>*>(own_->memory().data());
    return word.load(std::memory_order_acquire) != 0;
}

void DeviceRings::put(std::span<const std::byte> items, std::uint64_t taken) {
    for (std::size_t i = 0; i < items.size() / wire_bytes<CompletionItem>; ++i)
        queue_.push_back(decode_item<CompletionItem>(items, i));
    taken_ = taken;
    if (!flushing_) go_on();
}

// Works in rounds. A round puts the words of the completions whose rest the last round put, then the rest of
// the new ones, and flushes both.
void DeviceRings::go_on() {
    while (!failed_ && (!placed_.empty() || !queue_.empty() || taken_ != told_)) {
        Status status = taken_ != told_ ? put_taken() : Status::ok;
        words_ = !placed_.empty();
        for (const CompletionItem& item : placed_)
            if (status == Status::ok) status = put_word(item);
        for (const CompletionItem& item : queue_)
            if (status == Status::ok) status = put_rest(item);
        placed_.clear();
        placed_.swap(queue_);
        if (status != Status::ok) return fail();
        if (!flush()) return;
        settle();
    }
}

Status DeviceRings::put_taken() {
    told_ = taken_;
    return host_->put(taken_offset, bytes_of(taken_));
}

Status DeviceRings::put_rest(const CompletionItem& item) {
    struct {
        std::uint32_t source, tag, unused;
        std::uint64_t bytes;
    } __attribute__((packed)) const rest{item.source, item.tag, 0, item.bytes};
    static_assert(offsetof(CompletionEntry, source) == word_bytes &&
                  offsetof(CompletionEntry, bytes) == word_bytes + 12 && sizeof rest == 20);
    return host_->put(place_of(item) + word_bytes, bytes_of(rest));
}

Status DeviceRings::put_word(const CompletionItem& item) {
    return host_->put(place_of(item), bytes_of(item.word));
}

bool DeviceRings::flush() {
    const Status status = host_->flush(this);
    flushing_ = status == Status::in_progress;
    if (status != Status::ok && !flushing_) fail();
    return status == Status::ok;
}

// Called when the host can see what was put.
void DeviceRings::settle() {
    open_ = true;
    // As in HostRings::tell(), the words must be visible before this checks whether the host sleeps.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (std::exchange(words_, false) && host_sleeps()) events_.ring();
}

void DeviceRings::fail() {
    if (!std::exchange(failed_, true)) events_.failed();
}

void DeviceRings::on_flushed(Completion* self, Status status) {
    auto& rings = *static_cast<DeviceRings*>(self);
    rings.flushing_ = false;
    if (status != Status::ok) return rings.fail();
    rings.settle();
    rings.go_on();
}

}  // namespace offpath::link
