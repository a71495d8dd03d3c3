#include "link/host_channel.h"

#include <utility>

namespace offpath::link {
namespace {

constexpr std::size_t max_spare = 16;

}  // namespace

LinkClientChannel::LinkClientChannel(LinkDriver& link, const control::ChannelSizes& sizes)
    : LinkClientChannel(link, sizes, std::make_unique<Words>(sizes.completions)) {}

LinkClientChannel::LinkClientChannel(LinkDriver& link, const control::ChannelSizes& sizes,
                                     std::unique_ptr<Words> words)
    : ClientChannel(words->table.get(), sizes.completions, {&words->sequence, &words->waiting}),
      link_(link),
      room_(sizes.ring_bytes),
      words_(std::move(words)) {}

Status LinkClientChannel::post(const control::Command& command) {
    const std::size_t bytes = control::record_bytes(command);
    if (posted_ + bytes - taken_.load(std::memory_order_acquire) > room_) {
        // The device tells of room in messages that somebody has to take.
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
        if (spare_.size() < max_spare) spare_.push_back(std::move(sent.bytes));
    batches.clear();
    batches.swap(sealed_);
}

bool LinkClientChannel::on_completions(const Header& header, std::span<const std::byte> items) {
    // Messages may overtake one another; the number only grows.
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
    if (header.count > 0) words().wake();
    return true;
}

}  // namespace offpath::link
