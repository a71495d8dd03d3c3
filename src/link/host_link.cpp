#include "link/host_link.h"

#include "base/log.h"
#include "base/scheduling.h"
#include "link/host_channel.h"
#include "link/host_staging.h"
#include "transport/transport.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <system_error>
#include <thread>
#include <utility>

namespace offpath::link {
namespace {

// For the transport to let go of memory after a forced end of its endpoints, which takes it a few rounds.
constexpr auto release_patience = std::chrono::milliseconds(200);
// While something is on its way the agent looks now and then, whatever the transport's events say.
constexpr int patience_ms = 100;

// Whoever has it may use the transport. Nobody waits for it for long: who cannot have it leaves a note.
class TryLock {
  public:
    bool try_acquire() { return !taken_.exchange(true, std::memory_order_seq_cst); }
    void acquire() {
        while (!try_acquire())
            sched_yield();
    }
    void release() { taken_.store(false, std::memory_order_seq_cst); }

  private:
    std::atomic<bool> taken_{false};
};

class Host final : public HostLink, transport::Handler, LinkDriver {
  public:
    explicit Host(std::unique_ptr<transport::Transport> transport)
        : out_(*transport), staging_(*transport, out_), transport_(std::move(transport)) {
        transport_->set_handler(this);
    }
    ~Host() override;

    Status start(std::string& problem);

    std::vector<std::byte> address() const override { return transport_->address(); }
    std::string describe() const override { return transport_->describe(); }
    Status connect(std::span<const std::byte> device_address, std::uint64_t token,
                   const control::ChannelSizes& sizes, std::unique_ptr<control::ClientChannel>& channel,
                   std::string& problem) override;
    HostLinkCounters counters() const override;

    void kick() override;
    bool begin_progress() override;
    void progress() override;
    void end_progress() override;
    bool lost(std::string& why) override;
    void abandon() override;
    void forget_channel() override;

  private:
    // Payload of completions or requests that did not come with its header.
    struct Fetching : Completion {
        Host* owner = nullptr;
        Header header;
        std::vector<std::byte> bytes;
    };

    void on_message(const transport::Incoming& message) override;
    void on_endpoint_lost(transport::Endpoint& endpoint) override;
    void take_payload(const Header& header, std::span<const std::byte> payload);
    void fetch(const Header& header, void* rendezvous);
    static void on_fetched(Completion* self, Status status);

    void run();
    void sleep();
    bool watch(bool transport_too);
    void wake_agent() const;
    // Under the lock.
    unsigned work();
    void send_batches();
    void fail(std::string why);
    bool held() const { return out_.in_flight() > 0 || staging_.fetching() > 0 || fetching_ > 0; }
    void release();

    TryLock lock_;
    Outgoing out_;
    HostStaging staging_;
    std::uint64_t token_ = 0;
    transport::Endpoint* control_ = nullptr;
    transport::Endpoint* bulk_ = nullptr;
    LinkClientChannel* channel_ = nullptr;
    std::vector<Batch> batches_;
    transport::FreeList<Fetching> fetches_;
    std::size_t fetching_ = 0;
    bool closed_ = false;
    std::string why_lost_;

    std::atomic<bool> pending_{false};  // batches wait for whoever has the lock
    std::atomic<bool> driving_{false};  // a spinning thread progresses; the agent does not look at events
    std::atomic<bool> lost_{false}, stop_{false};
    std::atomic<std::uint64_t> messages_{0}, foreign_{0}, wakeups_{0};
    int epoll_ = -1, bell_ = -1;
    std::thread agent_;
    std::unique_ptr<transport::Transport> transport_;  // last: its end calls what it holds
};

Status Host::start(std::string& problem) {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    bell_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = bell_;
    bool fine = epoll_ >= 0 && bell_ >= 0 && epoll_ctl(epoll_, EPOLL_CTL_ADD, bell_, &event) == 0;
    event.data.fd = transport_->event_fd();
    fine = fine && epoll_ctl(epoll_, EPOLL_CTL_ADD, transport_->event_fd(), &event) == 0;
    if (!fine) {
        problem = fmt::format("epoll and eventfd: {}", std::strerror(errno));
        return Status::system;
    }
    // The program's signals are for its own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    Status status = Status::ok;
    try {
        agent_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
        problem = fmt::format("the link's agent thread: {}", error.what());
        status = Status::system;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return status;
}

Host::~Host() {
    if (agent_.joinable()) {
        stop_.store(true, std::memory_order_seq_cst);
        wake_agent();
        agent_.join();
    }
    transport_.reset();
    for (int fd : {epoll_, bell_})
        if (fd >= 0) close(fd);
}

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
    wake_agent();
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
    clockid_t clock{};
    timespec used{};
    auto& agent = const_cast<std::thread&>(agent_);  // the handle has no const
    if (pthread_getcpuclockid(agent.native_handle(), &clock) == 0 && clock_gettime(clock, &used) == 0)
        counters.agent_cpu_s = static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
    counters.wakeups = wakeups_.load(std::memory_order_relaxed);
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
    if (watch(false)) return true;
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
    (void)watch(true);
    driving_.store(false, std::memory_order_seq_cst);
    if (armed != Status::ok) wake_agent();
}

bool Host::watch(bool transport_too) {
    epoll_event event{};
    if (transport_too) event.events = EPOLLIN;
    event.data.fd = transport_->event_fd();
    return epoll_ctl(epoll_, EPOLL_CTL_MOD, event.data.fd, &event) == 0;
}

void Host::wake_agent() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(bell_, &one, sizeof one);
}

void Host::run() {
    pthread_setname_np(pthread_self(), "offpath-link");
    ask_for_short_slices();
    while (!stop_.load(std::memory_order_acquire)) {
        if (!lock_.try_acquire()) {
            sched_yield();
            continue;
        }
        const bool rest = work() == 0 && transport_->arm() == Status::ok;
        const int timeout = held() ? patience_ms : -1;
        lock_.release();
        if (pending_.load(std::memory_order_seq_cst)) {
            kick();
            continue;
        }
        if (!rest) continue;
        epoll_event events[2];
        const int count = epoll_wait(epoll_, events, 2, timeout);
        wakeups_.fetch_add(1, std::memory_order_relaxed);
        for (int i = 0; i < count; ++i) {
            std::uint64_t rung = 0;
            if (events[i].data.fd == bell_) {
                [[maybe_unused]] const auto got = read(bell_, &rung, sizeof rung);
            }
        }
    }
}

void Host::on_message(const transport::Incoming& message) {
    messages_.fetch_add(1, std::memory_order_relaxed);
    Header header;
    const bool ours = !closed_ && token_ != 0 && decode_header(message.header, message.bytes, header) &&
                      header.token == token_;
    const bool expected = ours && (header.kind == Kind::completions || header.kind == Kind::fetch ||
                                   header.kind == Kind::store || header.kind == Kind::copy);
    if (!expected || lost_.load(std::memory_order_relaxed)) {
        foreign_.fetch_add(1, std::memory_order_relaxed);
        if (message.rendezvous != nullptr) transport_->discard(message.rendezvous);
        if (ours && !expected) fail("the device sends messages that it must not send");
        return;
    }
    if (header.kind == Kind::store) {
        if (staging_.on_store(header, message) != Status::ok) fail("staging over the link failed");
    } else if (message.rendezvous != nullptr) {
        fetch(header, message.rendezvous);
    } else {
        take_payload(header, {message.data, message.bytes});
    }
}

void Host::take_payload(const Header& header, std::span<const std::byte> payload) {
    if (header.kind == Kind::completions) {
        if (channel_ != nullptr && !channel_->on_completions(header, payload))
            fail("the device sends completions that make no sense");
        return;
    }
    const Status status = header.kind == Kind::copy ? staging_.on_copy(payload, header.count)
                                                    : staging_.on_fetch(payload, header.count);
    if (status != Status::ok)
        fail(status == Status::protocol ? "the device asks for memory in pieces that are not accepted"
                                        : "the link to the device no longer takes messages");
}

void Host::fetch(const Header& header, void* rendezvous) {
    Fetching* const fetching = fetches_.take();
    fetching->function = &Host::on_fetched;
    fetching->owner = this;
    fetching->header = header;
    fetching->bytes.resize(header.bytes);
    ++fetching_;
    const Status status = transport_->fetch(rendezvous, fetching->bytes.data(), header.bytes, fetching);
    if (status != Status::in_progress) on_fetched(fetching, status);
}

void Host::on_fetched(Completion* self, Status status) {
    auto* const fetching = static_cast<Fetching*>(self);
    Host& owner = *fetching->owner;
    --owner.fetching_;
    if (status != Status::ok)
        owner.fail("the link to the device is broken");
    else if (!owner.closed_)
        owner.take_payload(fetching->header, fetching->bytes);
    owner.fetches_.give_back(fetching);
}

void Host::on_endpoint_lost(transport::Endpoint&) {
    fail("the link to the device is broken");
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

}  // namespace

Status make_host_link(std::unique_ptr<transport::Transport> transport, std::unique_ptr<HostLink>& link,
                      std::string& problem) {
    auto made = std::make_unique<Host>(std::move(transport));
    if (const Status status = made->start(problem); status != Status::ok) return status;
    link = std::move(made);
    return Status::ok;
}

}  // namespace offpath::link
