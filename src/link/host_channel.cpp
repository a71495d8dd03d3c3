#include "link/host_channel.h"

#include "link/command_stream.h"

#include <algorithm>
#include <utility>

namespace offpath::link {

LinkClientChannel::LinkClientChannel(LinkDriver& link, const control::ChannelSizes& sizes,
                                     const WrittenByDevice& written)
    : LinkClientChannel(link, sizes, written, std::make_unique<Words>(sizes.completions, written)) {}

LinkClientChannel::LinkClientChannel(LinkDriver& link, const control::ChannelSizes& sizes,
                                     const WrittenByDevice& written, std::unique_ptr<Words> words)
    : ClientChannel(words->table, sizes.completions, {&words->sequence, &words->waiting}),
      link_(link),
      room_(sizes.ring_bytes),
      taken_by_device_(written.taken),
      words_(std::move(words)) {}

Status LinkClientChannel::post(const control::Command& command) {
    const std::size_t bytes = control::record_bytes(command);
    const std::uint64_t taken = this->taken();
    if (taken > posted_) {
        link_.broken("the device says that it took commands that were never posted");
        return Status::retry;
    }
    if (posted_ + bytes - taken > room_) {
        // The device reports room in messages, which a thread of this process must take.
        ring();
        if (link_.begin_progress()) {
            link_.progress();
            link_.end_progress();
        }
        return Status::retry;
    }
    if (!current_.bytes.empty() && current_.bytes.size() + bytes > batch_bytes) {
        seal();
        link_.kick();
    }
    current_.bytes.resize(current_.bytes.size() + bytes);
    control::encode_command(command, std::span(current_.bytes).last(bytes));
    posted_ += bytes;
    return Status::ok;
}

std::uint64_t LinkClientChannel::taken() const {
    const std::uint64_t told = taken_.load(std::memory_order_acquire);
    if (taken_by_device_ == nullptr) return told;
    return std::max(told, taken_by_device_->load(std::memory_order_acquire));
}

void LinkClientChannel::seal() {
    std::vector<std::byte> next;
    {
        std::lock_guard lock(mutex_);
        if (!spare_.empty()) {
            next = std::move(spare_.back());
            spare_.pop_back();
        }
        const std::uint64_t number = current_.number;
        sealed_.push_back(std::exchange(current_, {number + 1, {}}));
    }
    next.clear();
    current_.bytes = std::move(next);
}

bool LinkClientChannel::ring() {
    if (current_.bytes.empty()) return false;
    seal();
    link_.kick();
    return true;
}

void LinkClientChannel::take_batches(std::vector<Batch>& batches) {
    std::lock_guard lock(mutex_);
    for (Batch& sent : batches)
        if (spare_.size() < max_spare_batches) spare_.push_back(std::move(sent.bytes));
    batches.clear();
    batches.swap(sealed_);
}

bool LinkClientChannel::on_completions(const Header& header, std::span<const std::byte> items) {
    // Messages may overtake one another, but the number only grows.
    if (header.position > taken_.load(std::memory_order_relaxed))
        taken_.store(header.position, std::memory_order_release);
    for (std::uint32_t i = 0; i < header.count; ++i) {
        const auto item = decode_item<CompletionItem>(items, i);
        if (item.slot >= completions() || item.word == 0) return false;
        control::CompletionEntry& entry = completion(item.slot);
        entry.source = item.source;
        entry.tag = item.tag;
        entry.bytes = item.bytes;
        entry.word.store(item.word, std::memory_order_release);
    }
    words().wake();
    return true;
}

}  // namespace offpath::link
