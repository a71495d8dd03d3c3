// HostRings: the client's half of rings.h. It has the window with the completion table, and tells the device
// whether threads sleep. Ownership: the link; the channel that uses the table ends first. Threads: the holder
// of the link's lock, unless stated otherwise; table(), taken() and in_use(): any.
#pragma once

#include "control/channel.h"
#include "transport/one_sided.h"

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace offpath::link {

class HostRings : Completion {
  public:
    // Errors: those of allocating the window.
    static Status make(std::unique_ptr<transport::OneSided> one_sided, const control::ChannelSizes& sizes,
                       std::unique_ptr<HostRings>& rings);
    HostRings(const HostRings&) = delete;
    HostRings& operator=(const HostRings&) = delete;

    std::vector<std::byte> key() const { return window_->key(); }
    // Takes the device's key. `seen` is called inside progress() when the last put is visible at the device.
    Status connect(std::span<const std::byte> device_key, std::function<void()> seen);
    bool connected() const { return device_ != nullptr; }
    const control::ChannelSizes& sizes() const { return sizes_; }
    void disconnect() { device_.reset(); }

    control::CompletionEntry* table() const;
    const std::atomic<std::uint64_t>& taken() const;
    // Whether the device writes here.
    bool in_use() const;

    // Tells the device that a thread is about to sleep. ok: the device can see it. in_progress: `seen`
    // follows. Otherwise an error.
    Status enter_wait();
    // Threads: any.
    void leave_wait() { sleepers_.fetch_sub(1, std::memory_order_acq_rel); }
    // A thread spins: unless another one sleeps, the device need not send messages until the next
    // enter_wait().
    void spin();

    transport::OneSided& one_sided() { return *one_sided_; }
    bool telling() const { return telling_; }
    // ok until a put to the device fails.
    Status health() const { return health_; }

  private:
    HostRings() = default;
    Status tell();
    static void on_told(Completion* self, Status status);

    control::ChannelSizes sizes_;
    std::unique_ptr<transport::OneSided> one_sided_;
    std::unique_ptr<transport::Window> window_;
    std::unique_ptr<transport::RemoteWindow> device_;
    std::function<void()> seen_;
    std::atomic<std::uint32_t> sleepers_{0};
    std::uint32_t wanted_ = 0;
    std::uint32_t told_ = 0;  // the last value put
    bool telling_ = false;    // that value is not visible yet
    Status health_ = Status::ok;
};

}  // namespace offpath::link
