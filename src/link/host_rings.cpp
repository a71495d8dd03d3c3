#include "link/host_rings.h"

#include "link/rings.h"

#include <array>
#include <cstring>
#include <utility>

namespace offpath::link {

Status HostRings::make(std::unique_ptr<transport::OneSided> one_sided, const control::ChannelSizes& sizes,
                       std::unique_ptr<HostRings>& rings) {
    std::unique_ptr<HostRings> made(new HostRings);
    made->sizes_ = sizes;
    made->one_sided_ = std::move(one_sided);
    made->function = &HostRings::on_told;
    if (const Status status = made->one_sided_->offer(host_window_bytes(sizes), made->window_);
        status != Status::ok)
        return status;
    rings = std::move(made);
    return Status::ok;
}

Status HostRings::connect(std::span<const std::byte> device_key, std::function<void()> seen) {
    std::unique_ptr<transport::RemoteWindow> device;
    if (const Status status = one_sided_->attach(device_key, device); status != Status::ok) return status;
    if (device->bytes() != device_window_bytes) return Status::protocol;
    device_ = std::move(device);
    seen_ = std::move(seen);
    return Status::ok;
}

control::CompletionEntry* HostRings::table() const {
    return reinterpret_cast<control::CompletionEntry*>(window_->memory().data() + entries_offset);
}

const std::atomic<std::uint64_t>& HostRings::taken() const {
    return *reinterpret_cast<const std::atomic<std::uint64_t>*>(window_->memory().data() + taken_offset);
}

bool HostRings::in_use() const {
    const auto& open =
        *reinterpret_cast<const std::atomic<std::uint32_t>*>(window_->memory().data() + open_offset);
    return open.load(std::memory_order_acquire) != 0;
}

Status HostRings::enter_wait() {
    sleepers_.fetch_add(1, std::memory_order_acq_rel);
    wanted_ = 1;
    return tell();
}

void HostRings::spin() {
    if (wanted_ == 0 || sleepers_.load(std::memory_order_acquire) > 0) return;
    wanted_ = 0;
    (void)tell();
}

// Only one put is outstanding at a time, because puts are not ordered.
Status HostRings::tell() {
    if (device_ == nullptr || health_ != Status::ok) return health_;
    if (telling_) return Status::in_progress;
    if (wanted_ == told_) return Status::ok;
    std::array<std::byte, word_bytes> bytes;
    std::memcpy(bytes.data(), &wanted_, sizeof wanted_);
    told_ = wanted_;
    health_ = device_->put(0, bytes);
    if (health_ != Status::ok) return health_;
    const Status status = device_->flush(this);
    telling_ = status == Status::in_progress;
    if (!telling_) health_ = status;
    // In shared memory a put is a store. The look at completions that follows must not overtake it.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return status;
}

void HostRings::on_told(Completion* self, Status status) {
    auto& rings = *static_cast<HostRings*>(self);
    rings.telling_ = false;
    if (status != Status::ok) rings.health_ = status;
    (void)rings.tell();
    rings.seen_();
}

}  // namespace offpath::link
