#include "transport/tcp/tcp_transport.h"

#include "transport/tcp/parts.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace offpath::transport {
namespace tcp {
namespace {

constexpr unsigned looks_between_events = 8;

Id draw_id() {
    Id id{};
    while (getrandom(id.data(), id.size(), 0) != static_cast<ssize_t>(id.size())) {
    }
    return id;
}

}  // namespace

Status TcpTransport::open(std::string& problem) {
    std::string names;
    if (const Status status = find_ips(config_.devices, ips_, names, problem); status != Status::ok)
        return status;
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = &timer_;
    if (epoll_ < 0 || timer_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, timer_, &event) != 0) {
        problem = fmt::format("epoll and timerfd: {}", std::strerror(errno));
        return Status::system;
    }
    address_.id = draw_id();
    description_ = names;
    if (!config_.listen) return Status::ok;
    address_.ips = ips_;
    numbers_.resize(forget_at_);  // touches the memory
    numbers_.clear();
    return listener_.open(epoll_, address_.port, problem);
}

TcpTransport::~TcpTransport() {
    handler_ = nullptr;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(config_.drain_ms);
    for (auto& endpoint : endpoints_) {
        while (endpoint->connection != nullptr && !endpoint->sender.idle() &&
               std::chrono::steady_clock::now() < end) {
            pollfd entry{endpoint->connection->socket, POLLOUT, 0};
            if (poll(&entry, 1, 10) < 0) break;
            endpoint->sender.became_writable();
            if (endpoint->sender.flush(over_) != Status::ok) break;
        }
    }
    while (!connections_.empty())
        close(*connections_.back());
    for (auto& endpoint : endpoints_)
        endpoint->sender.cancel(Status::canceled, over_);
    listener_.close();
    for (int fd : {timer_, epoll_})
        if (fd >= 0) ::close(fd);
    over_.insert(over_.end(), running_.begin(), running_.end());
    for (const Over& each : std::exchange(over_, {}))
        if (each.completion != nullptr)
            (*each.completion)(each.status == Status::peer_lost ? Status::canceled : each.status);
}

// The called code may disconnect, send and fail again. It may throw; the rest is called in the next round.
unsigned TcpTransport::run_over() {
    unsigned events = 0;
    if (running_.empty()) running_.swap(over_);
    for (Over& each : running_) {
        Completion* const completion = std::exchange(each.completion, nullptr);
        if (completion == nullptr) continue;
        (*completion)(each.status);
        ++events;
    }
    running_.clear();
    while (!lost_.empty()) {
        TcpEndpoint* const endpoint = lost_.front();
        lost_.erase(lost_.begin());
        if (handler_ != nullptr) handler_->on_endpoint_lost(*endpoint);
        ++events;
    }
    return events;
}

// When messages go back and forth, the next one usually comes from the peer of the last one. Asking that
// connection costs one system call instead of two. From time to time epoll is asked anyway.
bool TcpTransport::look_at_last(unsigned& work) {
    if (looks_left_ == 0 || --looks_left_ % looks_between_events == 0 || !ready_.empty() ||
        !last_->receiver.between_messages())
        return false;
    events_unseen_ = true;
    last_->receiver.became_readable(false);
    serve(*last_, work);
    return true;
}

unsigned TcpTransport::progress() {
    if (in_progress_) return 0;
    in_progress_ = true;
    // Resets the flag even if a handler throws.
    const std::unique_ptr<bool, void (*)(bool*)> done(&in_progress_, [](bool* flag) { *flag = false; });
    listener_.tend();
    unsigned work = 0;
    if (look_at_last(work)) {
        if (!over_.empty() || !running_.empty() || !lost_.empty()) work += run_over();
        buried_.clear();
        buried_endpoints_.clear();
        return work;
    }
    events_unseen_ = false;
    bool due = false;
    epoll_event events[32];
    const int count = epoll_wait(epoll_, events, 32, 0);
    for (int i = 0; i < count; ++i) {
        if (events[i].data.ptr == nullptr) {
            accept_some();
            continue;
        }
        if (events[i].data.ptr == &timer_) {
            due = count < 32;
            continue;
        }
        auto* const connection = static_cast<Connection*>(events[i].data.ptr);
        // An earlier event of this round may have closed it; then it is in buried_.
        if (connection->socket >= 0) mark(*connection, events[i].events);
    }
    serving_.swap(ready_);
    while (!serving_.empty()) {
        Connection& connection = *serving_.back();
        serving_.pop_back();
        connection.listed = false;
        serve(connection, work);
    }
    // Check the time limits after the arrived messages, because one of them may be the awaited one. If there
    // are more events, the timer fires again.
    if (due) tend();
    if (!over_.empty() || !running_.empty() || !lost_.empty()) work += run_over();
    buried_.clear();
    buried_endpoints_.clear();
    return work;
}

Status TcpTransport::arm() {
    if (!ready_.empty() || !serving_.empty() || !over_.empty() || !running_.empty() || !lost_.empty())
        return Status::retry;
    if (events_unseen_) {
        looks_left_ = 0;
        return Status::retry;
    }
    for (auto& connection : connections_)
        connection->receiver.prefer_much();
    return Status::ok;
}

}  // namespace tcp

Status make_tcp_transport(const TcpConfig& config, std::unique_ptr<Transport>& transport,
                          std::string& problem) {
    auto made = std::make_unique<tcp::TcpTransport>(config);
    if (const Status status = made->open(problem); status != Status::ok) return status;
    transport = std::move(made);
    return Status::ok;
}

}  // namespace offpath::transport
