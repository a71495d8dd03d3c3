#include "transport/tcp/parts.h"

#include "base/log.h"
#include "base/own_descriptors.h"
#include "base/patience.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace offpath::transport::tcp {
namespace {

// How many rounds without work go by until only epoll is asked again.
constexpr unsigned looks_at_last = 128;

// A peer that vanishes silently, or does not accept what is sent, is lost after 8 s, or after
// OFFPATH_LOST_AFTER_S. The same holds over UCX (ucx/tuning.cpp).
void set_up(int socket) {
    const auto set = [socket](int level, int option, int value) {
        (void)setsockopt(socket, level, option, &value, sizeof value);
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(IPPROTO_TCP, TCP_NOTSENT_LOWAT, unsent_bytes);
    const std::uint64_t limit_ns = lost_after_ns();
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, limit_ns == UINT64_MAX ? 0 : static_cast<int>(limit_ns / 1'000'000));
    set(IPPROTO_TCP, TCP_SYNCNT, 2);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace

bool Connection::on_frame(const Prefix& prefix, std::span<const std::byte> header) {
    switch (prefix.kind) {
        case FrameKind::hello:
            return owner.on_hello(*this, header);
        case FrameKind::welcome:
            return owner.on_welcome(*this);
        case FrameKind::message:
            return established;
    }
    return false;
}

void Connection::on_message(const Incoming& message) {
    if (owner.handler_ != nullptr) return owner.handler_->on_message(message);
    if (message.rendezvous != nullptr) owner.discard(message.rendezvous);
}

void Connection::over(Completion* completion, Status status) {
    owner.over_.push_back({completion, status});
}

Arrival* Connection::new_arrival() {
    return owner.arrivals_.take();
}

void Connection::end_arrival(Arrival* arrival) {
    arrival->own.reset();
    owner.arrivals_.give_back(arrival);
}

PipeCopy& Connection::pipe() {
    return owner.pipe_;
}

std::span<std::byte> Connection::scratch() {
    return owner.scratch_;
}

Connection* TcpTransport::add(int socket) try {
    connections_.reserve(connections_.size() + 1);
    auto made = std::make_unique<Connection>(*this);
    set_up(socket);
    made->socket = socket;
    made->since = std::chrono::steady_clock::now();
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.ptr = made.get();
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) != 0) return nullptr;
    own_descriptors::note(socket);
    tick(true);
    return connections_.emplace_back(std::move(made)).get();
} catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return nullptr;
}

void TcpTransport::mark(Connection& connection, std::uint32_t events) {
    const bool hung_up = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    if (connection.connecting) {
        int error = 0;
        socklen_t length = sizeof error;
        if (getsockopt(connection.socket, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
        if (error != 0) return lose(connection, std::strerror(error));
        if ((events & EPOLLOUT) == 0) return;
        say_hello(connection);
        if (connection.socket < 0) return;
    }
    if ((events & EPOLLIN) != 0 || hung_up) connection.receiver.became_readable(hung_up);
    if ((events & EPOLLOUT) != 0 && connection.endpoint != nullptr &&
        connection.endpoint->connection == &connection)
        connection.endpoint->sender.became_writable();
    if (!std::exchange(connection.listed, true)) ready_.push_back(&connection);
}

void TcpTransport::serve(Connection& connection, unsigned& work) {
    if (connection.socket < 0) return;
    TcpEndpoint* const endpoint = connection.endpoint;
    if (endpoint != nullptr && endpoint->connection == &connection && !endpoint->sender.idle() &&
        endpoint->sender.flush(over_) != Status::ok)
        return lose(connection, "it does not take messages");
    const unsigned before = work;
    Status status;
    try {
        status = connection.receiver.receive(work);
    } catch (const std::bad_alloc&) {
        status = Status::memory;  // the received data are lost, and the stream with them
    }
    if (connection.socket < 0) return;
    if (status != Status::ok)
        return lose(connection, status == Status::protocol ? "it sends nonsense"
                                : status == Status::memory ? "there is no memory for what comes"
                                                           : "the connection has ended");
    if (connection.receiver.readable() && !std::exchange(connection.listed, true))
        ready_.push_back(&connection);
    if (work == before) return;
    last_ = &connection;
    looks_left_ = looks_at_last;
}

void TcpTransport::lose(Connection& connection, const char* why) {
    TcpEndpoint* const endpoint = std::exchange(connection.endpoint, nullptr);
    const bool established = connection.established;
    close(connection);
    if (endpoint == nullptr || endpoint->lost) return;
    if (!established && --endpoint->attempts > 0) return;  // another address may reach the peer
    log::info("an endpoint is lost: {}", why);
    endpoint->connection = nullptr;
    endpoint->lost = true;
    endpoint->sender.cancel(Status::peer_lost, over_);
    lost_.push_back(endpoint);
}

void TcpTransport::close(Connection& connection) {
    if (connection.socket < 0) return;
    connection.receiver.close();
    if (connection.endpoint != nullptr && connection.endpoint->connection == &connection)
        connection.endpoint->connection = nullptr;
    // Remove it explicitly: a forked child may hold a copy of the descriptor.
    epoll_ctl(epoll_, EPOLL_CTL_DEL, connection.socket, nullptr);
    own_descriptors::forget(connection.socket);
    ::close(std::exchange(connection.socket, -1));
    std::erase(ready_, &connection);
    std::erase(serving_, &connection);
    if (last_ == &connection) {
        last_ = nullptr;
        looks_left_ = 0;
    }
    const auto at = std::find_if(connections_.begin(), connections_.end(),
                                 [&](const auto& each) { return each.get() == &connection; });
    buried_.push_back(std::move(*at));
    connections_.erase(at);
    listener_.room_again();
}

}  // namespace offpath::transport::tcp
