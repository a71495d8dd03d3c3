#include "proxy/proxy.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/pause.h"
#include "trace/trace.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <thread>

namespace offpath::proxy {
namespace {

constexpr unsigned commands_per_round = 64;
constexpr std::uint64_t socket_interval_ns = 500'000;
// Callers on direct paths wait for their answers. While they send requests, the proxy polls an idle fabric in
// every fourth round only, because a poll takes a system call.
constexpr int show_interval_ms = 50;
constexpr unsigned rounds_after_direct = 64, rounds_per_fabric = 4;
constexpr std::uint64_t stop_patience_ns = 1'000'000'000;
constexpr int tend_interval_ms = static_cast<int>(control::tend_interval_ns / 1'000'000);

engine::ProxyId draw_id() {
    engine::ProxyId id = 0;
    while (id == 0) {
        if (getrandom(&id, sizeof id, 0) != sizeof id) id = now_ns();
    }
    return id;
}

std::uint64_t thread_cpu_ns() {
    timespec used{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(used.tv_nsec);
}

}  // namespace

Proxy::Proxy(ProxyConfig config, std::unique_ptr<transport::Transport> transport, HostSide hosts)
    : config_(std::move(config)),
      transport_(std::move(transport)),
      hosts_(std::move(hosts)),
      resting_(config_.spin_us * 1000) {}

Proxy::~Proxy() {
    stop("offpathd ends");
}

Status Proxy::start(std::string& problem) {
    identity_ = {draw_id(), config_.index, config_.node, transport_->describe(), transport_->address(), {}};
    if (identity_.address.size() > control::max_address_bytes) {
        problem = fmt::format(
            "the fabric's address has {} bytes; at most {} are accepted (name fewer devices "
            "with --net-devices)",
            identity_.address.size(), control::max_address_bytes);
        return Status::unsupported;
    }
    if (hosts_.links != nullptr && hosts_.links->address().size() > control::max_link_address_bytes) {
        problem = fmt::format(
            "the address of the link to the hosts has {} bytes; at most {} are accepted (name fewer devices "
            "with "
            "--host-devices)",
            hosts_.links->address().size(), control::max_link_address_bytes);
        return Status::unsupported;
    }
    engine::Config engine;
    engine.stored_bytes = config_.stored_bytes;
    engine_ = std::make_unique<engine::Engine>(*transport_, identity_.id, engine);
    if (config_.direct != nullptr) {
        direct_ = std::make_unique<DirectPort>(std::move(config_.direct), *engine_);
        identity_.direct = direct_->address();
    }
    epoll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
    inbox_event_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!epoll_ || !inbox_event_) {
        problem = std::string("epoll and eventfd: ") + std::strerror(errno);
        return Status::system;
    }
    watch(inbox_event_.get());
    if (transport_->event_fd() >= 0) watch(transport_->event_fd());
    if (hosts_.links != nullptr) watch(hosts_.links->event_fd());
    if (hosts_.memory != nullptr) watch(hosts_.memory->event_fd());
    if (direct_ != nullptr) watch(direct_->event_fd());
    thread_ = std::thread([this] { run(); });
    return Status::ok;
}

void Proxy::take(Newcomer newcomer) {
    {
        std::lock_guard lock(mutex_);
        inbox_.push_back(std::move(newcomer));
        load_.fetch_add(1, std::memory_order_relaxed);
        inbox_full_.store(true, std::memory_order_release);
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(inbox_event_.get(), &one, sizeof one);
}

void Proxy::stop(const std::string& why) {
    if (!thread_.joinable()) return;
    {
        std::lock_guard lock(mutex_);
        stop_why_ = why;
    }
    stop_.store(true, std::memory_order_release);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(inbox_event_.get(), &one, sizeof one);
    thread_.join();
}

void Proxy::run() {
    pthread_setname_np(pthread_self(), fmt::format("proxy-{}", config_.index).c_str());
    if (config_.cpu >= 0) {
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        CPU_SET(static_cast<std::size_t>(config_.cpu), &cpus);
        if (const int error = pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus); error != 0)
            log::warn(Code::cores, "proxy {} cannot be bound to CPU {}: {}", config_.index, config_.cpu,
                      std::strerror(error));
    }
    trace::instant(trace::Kind::proxy, identity_.id, 0, config_.index);
    std::uint64_t give_up_ns = 0;
    while (true) {
        try {
            unsigned work = accept_sessions();
            work += drain_channels();
            work += advance_schedules();
            work += progress_fabric();
            complete();
            if (work > 0)
                resting_.worked();
            else
                rest();
            if (stop_.load(std::memory_order_acquire) && !ending_) {
                ending_ = true;
                give_up_ns = clock_.now_ns() + stop_patience_ns;
                std::lock_guard lock(mutex_);
                for (auto& session : sessions_)
                    session->end(Status::unavailable, stop_why_, true);
            }
        } catch (const std::bad_alloc&) {
            end_for_memory();
        }
        if (ending_ && (sessions_.empty() || clock_.now_ns() > give_up_ns)) break;
    }
    if (!sessions_.empty())
        log::warn(Code::unfinished, "proxy {} ends with {} sessions that still had transfers in flight",
                  config_.index, sessions_.size());
    // Transfers in flight write into memory of the sessions, so the transport ends first and cancels them.
    const auto counters = engine_->counters();
    log::info(
        "proxy {}: {} schedules run, {} failed, {} bytes sent, {} received ({} direct, {} copied once, "
        "{} more often), {} copied locally, {} reduced, in {:.2f} s of CPU time",
        config_.index, counters.instances_done, counters.instances_failed, counters.bytes_sent,
        counters.bytes_received, counters.copies.direct, counters.copies.once, counters.copies.more,
        counters.bytes_local, counters.bytes_reduced, static_cast<double>(thread_cpu_ns()) * 1e-9);
    direct_.reset();
    engine_->close();
    transport_.reset();
    if (!sessions_.empty()) return;
    hosts_ = {};
    engine_.reset();
}

// The proxy cannot tell which session used up the memory. It ends all of them, so that the daemon survives.
void Proxy::end_for_memory() {
    for (auto& session : sessions_) {
        try {
            session->end_for_memory();
        } catch (const std::bad_alloc&) {
            // The session has ended all the same; only its client does not learn why.
        }
    }
}

unsigned Proxy::accept_sessions() {
    unsigned work = 0;
    if (inbox_full_.load(std::memory_order_acquire)) {
        std::vector<Newcomer> newcomers;
        {
            std::lock_guard lock(mutex_);
            newcomers.swap(inbox_);
            inbox_full_.store(false, std::memory_order_relaxed);
        }
        for (Newcomer& newcomer : newcomers)
            adopt(std::move(newcomer));
        work += static_cast<unsigned>(newcomers.size());
    }
    if (++rounds_ % 16 == 0) {
        const std::uint64_t now = clock_.now_ns();
        if (now - sockets_served_ns_ > socket_interval_ns) serve_events(0);
    }
    return work;
}

void Proxy::adopt(Newcomer newcomer) {
    std::unique_ptr<Session> session;
    try {
        if (!ending_)
            session = Session::open(
                {*engine_, identity_, hosts_, direct_.get(), config_.kernels, clock_, epoll_.get()},
                std::move(newcomer));
    } catch (const std::bad_alloc&) {
        // This also closes its socket, so the client reports that the device hung up.
        log::error(Code::resources, "proxy {}: no memory for another session", config_.index);
    }
    if (!session) {
        load_.fetch_sub(1, std::memory_order_relaxed);
        return;
    }
    watch(session->socket());
    if (session->process_event() >= 0) watch(session->process_event());
    if (session->remote()) ++remote_sessions_;
    if (session->doorbell() >= 0) watch(session->doorbell());
    if (session->memory_event() >= 0) watch(session->memory_event());
    sessions_.push_back(std::move(session));
}

unsigned Proxy::drain_channels() {
    unsigned work = 0;
    for (auto& session : sessions_) {
        if (!session->ended()) work += session->drain(commands_per_round);
    }
    return work;
}

unsigned Proxy::advance_schedules() {
    return engine_->advance() ? 1 : 0;
}

unsigned Proxy::progress_fabric() {
    unsigned work = 0;
    if (direct_ != nullptr) {
        const unsigned asked = direct_->progress();
        if (asked > 0) direct_rounds_ = rounds_after_direct;
        work += asked;
    }
    if (direct_rounds_ > 0) --direct_rounds_;
    if (fabric_moved_ || direct_rounds_ == 0 || rounds_ % rounds_per_fabric == 0) {
        const unsigned moved = transport_->progress();
        fabric_moved_ = moved > 0;
        work += moved;
    }
    work += hosts_.progress();
    for (auto& session : sessions_)
        work += session->progress_memory();
    return work;
}

void Proxy::complete() {
    for (std::size_t i = 0; i < sessions_.size();) {
        sessions_[i]->deliver();
        if (sessions_[i]->ended() && sessions_[i]->close()) {
            drop(i);
        } else {
            ++i;
        }
    }
}

void Proxy::drop(std::size_t i) {
    // Closing a descriptor removes it from the epoll set only if the client holds no copy of the same open
    // file. The client does hold one of the doorbell.
    if (sessions_[i]->doorbell() >= 0)
        epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, sessions_[i]->doorbell(), nullptr);
    if (sessions_[i]->remote()) --remote_sessions_;
    if (sessions_[i]->memory_event() >= 0)
        epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, sessions_[i]->memory_event(), nullptr);
    sessions_.erase(sessions_.begin() + static_cast<std::ptrdiff_t>(i));
    trim_due_ = true;
    load_.fetch_sub(1, std::memory_order_relaxed);
}

void Proxy::rest() {
    if (config_.kernels.beside_proxies &&
        std::any_of(sessions_.begin(), sessions_.end(), [](const auto& s) { return s->kernels_run(); }))
        return sleep_until_event();
    switch (resting_.next(clock_.now_ns())) {
        case Resting::Next::spin:
            return pause_cpu();
        case Resting::Next::yield:
            std::this_thread::yield();
            return;
        case Resting::Next::sleep:
            return sleep_until_event();
    }
}

void Proxy::sleep_until_event() {
    bool quiet = !engine_->has_work() && !inbox_full_.load(std::memory_order_acquire) &&
                 !stop_.load(std::memory_order_acquire);
    bool closing = ending_;
    for (auto& session : sessions_) {
        if (session->ended()) {
            closing = true;
        } else if (!session->prepare_sleep()) {
            quiet = false;
        }
    }
    // A session may have taken gigabytes, which the allocator would keep. At this moment no client waits for
    // this proxy.
    if (quiet && trim_due_) {
        trim_due_ = false;
        engine_->trim();
        malloc_trim(0);
    }
    // No event wakes the proxy for a session that is closing, and a remote client's silence is no event.
    int limit_ms = closing ? 1 : remote_sessions_ > 0 ? tend_interval_ms : -1;
    std::uint64_t deadline_ns = UINT64_MAX;
    // The next round of beats. A late one would notice a loss so late that others have stopped waiting for
    // it.
    if (lost_after_ns_ != UINT64_MAX && engine_->awaits_others())
        deadline_ns = beaten_ns_ + beat_interval_ns_;
    for (const auto& session : sessions_)
        deadline_ns = std::min(deadline_ns, session->deadline_ns());
    if (deadline_ns != UINT64_MAX) {
        const std::uint64_t now = clock_.now_ns();
        const std::uint64_t left_ms = (std::max(deadline_ns, now) - now) / 1'000'000 + 1;
        const int until_ms = static_cast<int>(std::min<std::uint64_t>(left_ms, 1'000'000));
        limit_ms = limit_ms < 0 ? until_ms : std::min(limit_ms, until_ms);
    }
    if (quiet && !show()) limit_ms = limit_ms < 0 ? show_interval_ms : std::min(limit_ms, show_interval_ms);
    if (quiet && transport_->arm() == Status::ok && hosts_.arm() == Status::ok &&
        (direct_ == nullptr || direct_->arm() == Status::ok))
        serve_events(limit_ms);
    for (auto& session : sessions_)
        session->end_sleep();
}

int Proxy::wait_for_events(std::span<epoll_event> events, int timeout_ms) {
    std::optional<trace::Span> asleep;
    if (timeout_ms != 0) asleep.emplace(trace::Kind::sleep);
    int count;
    do {
        count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
    } while (count < 0 && errno == EINTR);
    return count;
}

void Proxy::serve_events(int timeout_ms) {
    epoll_event events[64];
    const int count = wait_for_events(events, timeout_ms);
    sockets_served_ns_ = clock_.now_ns();
    for (int i = 0; i < count; ++i) {
        const int fd = events[i].data.fd;
        if (fd == inbox_event_.get()) {
            std::uint64_t value;
            [[maybe_unused]] const auto got = read(fd, &value, sizeof value);
            continue;
        }
        for (auto& session : sessions_) {
            if (fd == session->doorbell()) {
                session->clear_doorbell();
            } else if (fd == session->socket() || fd == session->process_event()) {
                if (session->ended()) {
                    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
                } else if (fd == session->socket()) {
                    session->read_socket();
                } else {
                    session->process_ended();
                }
            } else if (!session->serve_kernels(fd)) {
                continue;
            }
            break;
        }
    }
    if (remote_sessions_ > 0 && sockets_served_ns_ - tended_ns_ > control::tend_interval_ns / 2)
        tend_sessions();
    if (sockets_served_ns_ - beaten_ns_ >= beat_interval_ns_) beat();
    if (timeout_ms == 0) (void)show();
}

// Writes its part of the status page, unless it did so a short time ago. Then it returns false, and the
// caller, if it sleeps, must come back soon.
bool Proxy::show() {
    if (config_.shown == nullptr) return true;
    const std::uint64_t now = clock_.now_ns();
    if (now - shown_ns_ < show_interval_ms * std::uint64_t{1'000'000}) return false;
    show_now(now);
    return true;
}

void Proxy::show_now(std::uint64_t now_ns) {
    shown_ns_ = now_ns;
    ShownProxy& part = *config_.shown;
    const engine::Counters& counters = engine_->counters();
    begin_showing(part);
    part.thread = static_cast<std::uint64_t>(gettid());
    part.cpu = config_.cpu;
    part.sessions = sessions_.size();
    part.outstanding = 0;
    for (std::size_t i = 0; i < sessions_.size(); ++i) {
        const Session& session = *sessions_[i];
        part.outstanding += session.outstanding();
        if (i < shown_sessions)
            show_session(part.shown[i], session.name(), session.started(), session.outstanding());
    }
    part.schedules_run = counters.instances_done;
    part.schedules_failed = counters.instances_failed;
    part.bytes_sent = counters.bytes_sent;
    part.bytes_received = counters.bytes_received;
    part.bytes_copied = counters.bytes_local;
    part.bytes_reduced = counters.bytes_reduced;
    part.bytes_direct = counters.copies.direct;
    part.bytes_copied_once = counters.copies.once;
    part.bytes_copied_more_often = counters.copies.more;
    part.written_ns = now_ns;
    part.cpu_ns = thread_cpu_ns();
    end_showing(part);
}

void Proxy::beat() {
    beaten_ns_ = sockets_served_ns_;
    if (lost_after_ns_ == UINT64_MAX) return;
    // After a pause, for example of this process, answers may already have arrived.
    (void)transport_->progress();
    engine_->beat(beaten_ns_, lost_after_ns_);
}

void Proxy::tend_sessions() {
    tended_ns_ = sockets_served_ns_;
    for (auto& session : sessions_)
        session->tend(tended_ns_);
}

void Proxy::watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
        log::error(Code::resources, "proxy {}: epoll does not take descriptor {}: {}", config_.index, fd,
                   std::strerror(errno));
}

}  // namespace offpath::proxy
