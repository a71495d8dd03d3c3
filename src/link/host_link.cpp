#include "link/host.h"

#include "base/log.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace offpath::link {
namespace {

// For the transport to let go of memory after a forced end of its endpoints, which takes it a few rounds.
constexpr auto release_patience = std::chrono::milliseconds(200);
// While something is on its way the agent looks now and then, whatever the transport's events say.
constexpr int patience_ms = 100;

}  // namespace

Status Host::connect(std::span<const std::byte> device_address, std::uint64_t token,
                     const control::ChannelSizes& sizes, std::unique_ptr<control::ClientChannel>& channel,
                     std::string& problem) {
    if (token == 0 || token_ != 0 || !control::acceptable(sizes)) {
        problem = "a token that is 0, a channel of unacceptable sizes, or a second connection";
        return Status::invalid;
    }
    auto made = std::make_unique<LinkClientChannel>(static_cast<LinkDriver&>(*this), sizes);
    lock_.acquire();
    Status status = transport_->connect(device_address, &control_);
    if (status == Status::ok) status = transport_->connect(device_address, &bulk_);
    if (status == Status::ok) {
        token_ = token;
        channel_ = made.get();
        staging_.connect(token, control_, bulk_);
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

// Whoever has the lock looks for batches again after letting go of it: one of the two sees the other.
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
    const unsigned events = transport_->progress();
    if (staging_.has_answers() && !lost_ && staging_.flush() != Status::ok)
        fail("the link to the device no longer takes messages");
    if (pending_.load(std::memory_order_seq_cst)) send_batches();
    return events;
}

bool Host::begin_progress() {
    if (driving_.exchange(true, std::memory_order_seq_cst)) return false;
    if (agent_.watch(false)) return true;
    driving_.store(false, std::memory_order_seq_cst);
    return false;
}

void Host::progress() {
    if (!lock_.try_acquire()) return;
    (void)work();
    lock_.release();
    if (pending_.load(std::memory_order_seq_cst)) kick();
}

// The agent must find the transport armed when it looks at its events again.
void Host::end_progress() {
    lock_.acquire();
    const Status armed = transport_->arm();
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
    const bool rest = work() == 0 && transport_->arm() == Status::ok;
    const int timeout = held() ? patience_ms : -1;
    lock_.release();
    if (pending_.load(std::memory_order_seq_cst)) {
        kick();
        return {};
    }
    if (!rest) return {};
    return timeout;
}

// The first reason stays. Waiting threads come and look.
void Host::fail(std::string why) {
    if (lost_.load(std::memory_order_relaxed)) return;
    why_lost_ = std::move(why);
    lost_.store(true, std::memory_order_release);
    if (channel_ != nullptr) channel_->wake_waiters();
}

bool Host::lost(std::string& why) {
    if (!lost_.load(std::memory_order_acquire)) return false;
    why = why_lost_;
    return true;
}

void Host::release() {
    for (transport::Endpoint** endpoint : {&control_, &bulk_})
        if (*endpoint != nullptr) transport_->disconnect(std::exchange(*endpoint, nullptr));
    staging_.connect(0, nullptr, nullptr);
}

void Host::abandon() {
    lock_.acquire();
    closed_ = true;
    release();
    const auto deadline = std::chrono::steady_clock::now() + release_patience;
    while (held() && std::chrono::steady_clock::now() < deadline)
        (void)transport_->progress();
    if (held()) log::warn("the transport holds on to memory of the program after the end of its link");
    lock_.release();
}

Status make_host_link(std::unique_ptr<transport::Transport> transport, std::unique_ptr<HostLink>& link,
                      std::string& problem) {
    auto made = std::make_unique<Host>(std::move(transport));
    if (const Status status = made->start(problem); status != Status::ok) return status;
    link = std::move(made);
    return Status::ok;
}

}  // namespace offpath::link
