#include "transport/tcp/parts.h"

#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace offpath::transport::tcp {
namespace {

// Strangers are connections that have not yet said which peer they want, or want one to which nothing here
// connects yet. The limit is above the number of ranks of a host, which may all attach at once.
constexpr std::size_t max_strangers = 512;
// The time for a stranger to say which peer it wants, and for a listener to answer.
constexpr std::chrono::seconds hello_time{5}, welcome_time{8};
constexpr long tick_ns = 500'000'000;
// The most connections that are accepted in a round. Their first messages are read before the next ones are
// accepted, so a connection that speaks does not remain a stranger for long.
constexpr int max_accepted = 32;

}  // namespace

void TcpTransport::accept_some() {
    for (int i = 0; i < max_accepted; ++i) {
        const int socket = listener_.accept(ips_, !config_.devices.empty());
        if (socket < 0 && listener_.full() && !drop_stranger(1)) {
            listener_.pause();
            return tick(true);
        }
        if (socket < 0 && !listener_.full()) return;
        if (socket < 0) continue;
        (void)drop_stranger(max_strangers);
        Connection* const connection = add(socket);
        if (connection == nullptr) {
            ::close(socket);
            continue;
        }
        connection->receiver.connect(socket);
        connection->receiver.became_readable(false);
        connection->listed = true;
        ready_.push_back(connection);
    }
}

// Closes the oldest stranger if there are at least `limit`.
bool TcpTransport::drop_stranger(std::size_t limit) {
    const auto stranger = [](const auto& each) { return !each->ours && each->endpoint == nullptr; };
    if (static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(), stranger)) < limit)
        return false;
    close(**std::find_if(connections_.begin(), connections_.end(), stranger));
    return true;
}

// The timer runs while something has a time limit.
void TcpTransport::tick(bool on) {
    if (std::exchange(ticking_, on) == on) return;
    itimerspec time{};
    if (on) time.it_value.tv_nsec = time.it_interval.tv_nsec = tick_ns;
    (void)timerfd_settime(timer_, 0, &time, nullptr);
}

void TcpTransport::tend() {
    std::uint64_t ticks = 0;
    [[maybe_unused]] const auto got = ::read(timer_, &ticks, sizeof ticks);
    const auto now = std::chrono::steady_clock::now();
    bool some = listener_.paused();
    for (std::size_t i = connections_.size(); i-- > 0;) {
        Connection& each = *connections_[i];
        if (each.established) continue;
        if (now - each.since > (each.ours ? welcome_time : hello_time))
            lose(each, "it does not answer");
        else
            some = true;
    }
    tick(some);
}

bool TcpTransport::on_hello(Connection& connection, std::span<const std::byte> header) {
    if (connection.ours || connection.established ||
        !std::equal(address_.id.begin(), address_.id.end(), header.begin()))
        return false;
    std::copy_n(header.begin() + 16, connection.peer.size(), connection.peer.begin());
    connection.number = static_cast<std::uint32_t>(read_little(header, 32, 4));
    // The same endpoint has connected over another address of this process. One connection is enough.
    for (const auto& other : connections_) {
        if (other.get() != &connection && !other->ours && other->established &&
            other->peer == connection.peer && other->number == connection.number)
            return false;
    }
    std::array<std::byte, prefix_bytes> welcome;
    encode_prefix({FrameKind::welcome, 0, 0}, welcome);
    if (::send(connection.socket, welcome.data(), welcome.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(welcome.size()))
        return false;
    connection.established = true;
    for (auto& endpoint : endpoints_) {
        if (endpoint->connection == nullptr && endpoint->attempts == 0 && !endpoint->lost &&
            endpoint->peer == connection.peer && endpoint->number == connection.number) {
            join(connection, *endpoint);
            break;
        }
    }
    return true;
}

bool TcpTransport::on_welcome(Connection& connection) {
    if (!connection.ours || connection.established || connection.endpoint == nullptr) return false;
    TcpEndpoint& endpoint = *connection.endpoint;
    connection.established = true;
    for (std::size_t i = connections_.size(); i-- > 0;) {
        Connection& other = *connections_[i];
        if (&other == &connection || other.endpoint != &endpoint) continue;
        other.endpoint = nullptr;
        close(other);
    }
    endpoint.attempts = 0;
    join(connection, endpoint);
    return true;
}

void TcpTransport::say_hello(Connection& connection) {
    connection.connecting = false;
    connection.receiver.connect(connection.socket);
    std::array<std::byte, prefix_bytes + hello_bytes> hello;
    encode_prefix({FrameKind::hello, hello_bytes, 0}, hello);
    std::copy(connection.peer.begin(), connection.peer.end(), hello.begin() + prefix_bytes);
    std::copy(address_.id.begin(), address_.id.end(), hello.begin() + prefix_bytes + 16);
    write_little(hello, prefix_bytes + 32, connection.number, 4);
    if (::send(connection.socket, hello.data(), hello.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(hello.size()))
        lose(connection, "it does not take messages");
}

// Called when both sides know each other. Sends the messages that waited.
void TcpTransport::join(Connection& connection, TcpEndpoint& endpoint) {
    connection.endpoint = &endpoint;
    endpoint.connection = &connection;
    endpoint.sender.connect(connection.socket);
    if (endpoint.sender.flush(over_) != Status::ok) lose(connection, "it does not take messages");
}

}  // namespace offpath::transport::tcp
