#include "link/host.h"

#include "base/log.h"
#include "link/address_and_key.h"
#include "link/release.h"

#include <fmt/format.h>

#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace offpath::link {
namespace {

// While something is in flight, the agent checks at this interval, whatever the transport's events say.
constexpr int patience_ms = 100;

}  // namespace

Status Host::start(std::string& problem) {
    end_event_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!end_event_) {
        problem = fmt::format("eventfd: {}", std::strerror(errno));
        return Status::system;
    }
    if (rings_ == nullptr) return agent_.start(transport_->event_fd(), problem);
    if (events_.open(transport_->event_fd(), rings_->one_sided().event_fd()) != Status::ok) {
        problem = "epoll: the link cannot wait for its events";
        return Status::system;
    }
    return agent_.start(events_.fd(), problem);
}

std::vector<std::byte> Host::address() const {
    if (rings_ == nullptr) return transport_->address();
    return join_address_and_key({transport_->address(), rings_->key()});
}

std::string Host::rings() const {
    return rings_ != nullptr && rings_->in_use() ? "remote memory" : "messages";
}

Status Host::connect(std::span<const std::byte> device_address, std::uint64_t token,
                     const control::ChannelSizes& sizes, std::unique_ptr<control::ClientChannel>& channel,
                     std::string& problem) {
    if (token == 0 || token_ != 0 || !control::acceptable(sizes)) {
        problem = "a token that is 0, a channel of unacceptable sizes, or a second connection";
        return Status::invalid;
    }
    const AddressAndKey device = split_address_and_key(device_address);
    WrittenByDevice written;
    lock_.acquire();
    Status status = transport_->connect(device.address, &control_);
    if (status == Status::ok) status = transport_->connect(device.address, &bulk_);
    if (status == Status::ok && !device.key.empty()) status = connect_rings(device.key, sizes, written);
    auto made = std::make_unique<LinkClientChannel>(static_cast<LinkDriver&>(*this), sizes, written);
    if (status == Status::ok) {
        token_ = token;
        channel_ = made.get();
        staging_.connect(token, control_, bulk_);
        tells_of_waits_.store(rings_ != nullptr && rings_->connected(), std::memory_order_release);
    } else {
        release();
    }
    lock_.release();
    if (status != Status::ok) {
        problem = fmt::format("the device's link address cannot be connected to from {}: {}", describe(),
                              to_string(status));
        return status;
    }
    agent_.wake();
    channel = std::move(made);
    return Status::ok;
}

// The device writes into this side's window only if it has told this side of its own.
Status Host::connect_rings(std::span<const std::byte> key, const control::ChannelSizes& sizes,
                           WrittenByDevice& written) {
    if (rings_ == nullptr || rings_->sizes() != sizes) return Status::protocol;
    const Status status = rings_->connect(key, [this] {
        if (channel_ != nullptr) channel_->wake_waiters();
    });
    if (status == Status::ok) written = {rings_->table(), &rings_->taken()};
    return status;
}

void Host::forget_channel() {
    lock_.acquire();
    channel_ = nullptr;
    lock_.release();
}

HostLinkCounters Host::counters() const {
    HostLinkCounters counters;
    counters.agent_cpu_s = agent_.cpu_s();
    counters.wakeups = agent_.wakeups();
    counters.bytes_to_device = staging_.bytes_to_device();
    counters.bytes_to_host = staging_.bytes_to_host();
    counters.messages = messages_.load(std::memory_order_relaxed);
    counters.foreign = foreign_.load(std::memory_order_relaxed);
    return counters;
}

// The holder of the lock checks for batches again after it has released the lock. So either this thread gets
// the lock, or the holder sees its batches.
void Host::kick() {
    pending_.store(true, std::memory_order_seq_cst);
    while (pending_.load(std::memory_order_seq_cst) && lock_.try_acquire()) {
        send_batches();
        lock_.release();
    }
}

void Host::send_batches() {
    pending_.store(false, std::memory_order_seq_cst);
    if (channel_ == nullptr || control_ == nullptr) return;
    channel_->take_batches(batches_);
    for (const Batch& batch : batches_) {
        Header header;
        header.kind = Kind::commands;
        header.token = token_;
        header.position = batch.number;
        header.bytes = static_cast<std::uint32_t>(batch.bytes.size());
        if (out_.post(*control_, header, batch.bytes) != Status::ok)
            fail("the link to the device no longer takes messages");
    }
}

unsigned Host::work() {
    unsigned events = transport_->progress();
    if (rings_ != nullptr) {
        events += rings_->one_sided().progress();
        look_at_rings();
    }
    if (staging_.has_answers() && !lost_ && staging_.flush() != Status::ok)
        fail("the link to the device no longer takes messages");
    if (pending_.load(std::memory_order_seq_cst)) send_batches();
    return events;
}

void Host::look_at_rings() {
    if (rings_->health() != Status::ok) fail("the link to the device no longer takes what is written");
}

Status Host::arm() {
    const Status status = transport_->arm();
    return status == Status::ok && rings_ != nullptr ? rings_->one_sided().arm() : status;
}

// The agent finishes what cannot be done at once.
void Host::enter_wait() {
    if (!tells_of_waits_.load(std::memory_order_acquire)) return;
    lock_.acquire();
    const Status status = rings_->enter_wait();
    look_at_rings();
    lock_.release();
    if (pending_.load(std::memory_order_seq_cst)) kick();
    if (status == Status::in_progress) agent_.wake();
}

void Host::leave_wait() {
    if (!tells_of_waits_.load(std::memory_order_acquire)) return;
    rings_->leave_wait();
}

void Host::broken(const char* why) {
    lock_.acquire();
    fail(why);
    lock_.release();
    if (pending_.load(std::memory_order_seq_cst)) kick();
}

bool Host::begin_progress() {
    if (driving_.exchange(true, std::memory_order_seq_cst)) return false;
    if (agent_.watch(false)) return true;
    driving_.store(false, std::memory_order_seq_cst);
    return false;
}

void Host::progress() {
    if (!lock_.try_acquire()) return;
    if (rings_ != nullptr) rings_->spin();
    (void)work();
    lock_.release();
    if (pending_.load(std::memory_order_seq_cst)) kick();
}

// The agent must find the transport armed when it watches its events again.
void Host::end_progress() {
    lock_.acquire();
    const Status armed = arm();
    lock_.release();
    if (pending_.load(std::memory_order_seq_cst)) kick();
    (void)agent_.watch(true);
    driving_.store(false, std::memory_order_seq_cst);
    if (armed != Status::ok) agent_.wake();
}

std::optional<int> Host::work_for_agent() {
    if (!lock_.try_acquire()) {
        sched_yield();
        return {};
    }
    const bool rest = work() == 0 && arm() == Status::ok;
    const int timeout = busy() ? patience_ms : -1;
    if (lost_.load(std::memory_order_relaxed)) disconnect();
    lock_.release();
    if (pending_.load(std::memory_order_seq_cst)) {
        kick();
        return {};
    }
    if (!rest) return {};
    return timeout;
}

// Keeps the first reason, and wakes waiting threads so that they see the loss.
void Host::fail(std::string why) {
    if (lost_.load(std::memory_order_relaxed)) return;
    why_lost_ = std::move(why);
    lost_.store(true, std::memory_order_release);
    if (channel_ != nullptr) channel_->wake_waiters();
    agent_.wake();
}

bool Host::lost(std::string& why) {
    if (!lost_.load(std::memory_order_acquire)) return false;
    why = why_lost_;
    return true;
}

void Host::disconnect() {
    for (transport::Endpoint** endpoint : {&control_, &bulk_})
        if (*endpoint != nullptr) transport_->disconnect(std::exchange(*endpoint, nullptr));
    staging_.connect(0, nullptr, nullptr);
    tell_end();
}

void Host::release() {
    disconnect();
    if (rings_ != nullptr) rings_->disconnect();
}

// The program may be in a call that makes no progress here, so another thread may wait for this.
void Host::tell_end() {
    if (!held()) eventfd_write(end_event_.get(), 1);
}

void Host::abandon() {
    lock_.acquire();
    closed_ = true;
    release();
    progress_until_released(*transport_, [this] { return held(); });
    tell_end();
    if (held())
        log::warn(Code::network_end,
                  "the transport holds on to memory of the program after the end of its link");
    lock_.release();
}

Status make_host_link(std::unique_ptr<transport::Transport> transport,
                      std::unique_ptr<transport::OneSided> one_sided, std::unique_ptr<HostLink>& link,
                      std::string& problem) {
    std::unique_ptr<HostRings> rings;
    if (one_sided != nullptr && HostRings::make(std::move(one_sided), {}, rings) != Status::ok)
        log::warn(Code::slower_way,
                  "no memory that the device could write completions into; they come in messages");
    auto made = std::make_unique<Host>(std::move(transport), std::move(rings));
    if (const Status status = made->start(problem); status != Status::ok) return status;
    link = std::move(made);
    return Status::ok;
}

}  // namespace offpath::link
