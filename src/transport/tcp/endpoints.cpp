#include "transport/tcp/parts.h"

#include "base/log.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace offpath::transport::tcp {

bool TcpTransport::start(const Ip& ip, std::uint16_t port, TcpEndpoint& endpoint, std::string& problem) {
    sockaddr_storage to{}, from{};
    const socklen_t length = to_socket_address(ip, port, to);
    const int made = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    // If devices were named, connect from one that has an address of this kind.
    const auto own =
        std::find_if(ips_.begin(), ips_.end(), [&](const Ip& each) { return each.six == ip.six; });
    bool fine = made >= 0 && (config_.devices.empty() || own != ips_.end());
    if (fine && !config_.devices.empty()) {
        const socklen_t own_length = to_socket_address(*own, 0, from);
        fine = bind(made, reinterpret_cast<sockaddr*>(&from), own_length) == 0;
    }
    Connection* const added = fine ? add(made) : nullptr;
    if (added != nullptr) {
        Connection& connection = *added;
        connection.ours = connection.connecting = true;
        connection.endpoint = &endpoint;
        connection.peer = endpoint.peer;
        connection.number = endpoint.number;
        if (::connect(made, reinterpret_cast<sockaddr*>(&to), length) == 0 || errno == EINPROGRESS) {
            ++endpoint.attempts;
            return true;
        }
        problem = std::strerror(errno);
        connection.endpoint = nullptr;
        close(connection);
        return false;
    }
    problem = made < 0 || fine ? std::strerror(errno) : "no address of this kind here";
    if (made >= 0) ::close(made);
    return false;
}

// Bounds the table, because a device serves any number of hosts, one after another.
void TcpTransport::forget_peers() {
    if (numbers_.size() < forget_at_) return;
    const auto is_of = [](const Id& id) { return [&id](const auto& each) { return each->peer == id; }; };
    std::erase_if(numbers_, [&](const auto& each) {
        return std::none_of(endpoints_.begin(), endpoints_.end(), is_of(each.peer)) &&
               std::none_of(connections_.begin(), connections_.end(), is_of(each.peer));
    });
    forget_at_ = std::max(forget_at_, 2 * numbers_.size());
}

std::uint32_t TcpTransport::next_number(const Id& peer) {
    const auto known = std::find_if(numbers_.begin(), numbers_.end(),
                                    [&](const Numbered& each) { return each.peer == peer; });
    if (known != numbers_.end()) return known->next++;
    forget_peers();
    numbers_.push_back({peer, 1});
    return 0;
}

Status TcpTransport::connect(std::span<const std::byte> bytes, Endpoint** endpoint) {
    Address address;
    std::string problem;
    if (const Status status = decode(bytes, address, problem); status != Status::ok) {
        log::error(Code::no_way, "cannot connect: {}", problem);
        return status;
    }
    auto made = std::make_unique<TcpEndpoint>();
    made->peer = address.id;
    made->number = next_number(address.id);
    if (address.port == 0) {
        if (!config_.listen) return Status::unavailable;
        // The peer may have connected already.
        for (auto& each : connections_) {
            if (!each->ours && each->established && each->endpoint == nullptr && each->peer == made->peer &&
                each->number == made->number) {
                join(*each, *made);
                break;
            }
        }
    } else {
        for (const Ip& ip : address.ips)
            (void)start(ip, address.port, *made, problem);
        if (made->attempts == 0) {
            log::error(Code::no_way, "no way leads to the peer: {}", problem);
            return Status::unavailable;
        }
    }
    *endpoint = made.get();
    endpoints_.push_back(std::move(made));
    return Status::ok;
}

void TcpTransport::disconnect(Endpoint* endpoint) {
    auto& ours = static_cast<TcpEndpoint&>(*endpoint);
    std::erase(lost_, &ours);
    ours.sender.cancel(Status::peer_lost, over_);
    for (std::size_t i = connections_.size(); i-- > 0;) {
        Connection& connection = *connections_[i];
        if (connection.endpoint != &ours) continue;
        connection.endpoint = nullptr;
        close(connection);
    }
    const auto at = std::find_if(endpoints_.begin(), endpoints_.end(),
                                 [&](const auto& each) { return each.get() == &ours; });
    buried_endpoints_.push_back(std::move(*at));
    endpoints_.erase(at);
    if (!in_progress_) buried_endpoints_.clear();
}

Status TcpTransport::post(Endpoint& endpoint, std::span<const std::byte> header,
                          std::span<const std::byte> payload) {
    auto& to = static_cast<TcpEndpoint&>(endpoint);
    if (header.size() > max_wire_header || payload.size() > max_post) return Status::invalid;
    if (to.lost) return Status::peer_lost;
    const Status status = to.sender.post(header, payload);
    if (status == Status::peer_lost) lose(to);
    return status;
}

void TcpTransport::let_go(Endpoint& endpoint) {
    auto& to = static_cast<TcpEndpoint&>(endpoint);
    if (!to.lost && to.sender.let_go(over_) == Status::peer_lost) lose(to);
}

Status TcpTransport::send(Endpoint& endpoint, std::span<const std::byte> header, const void* payload,
                          std::size_t bytes, Completion* completion) {
    auto& to = static_cast<TcpEndpoint&>(endpoint);
    if (header.size() > max_wire_header) return Status::invalid;
    if (to.lost) return Status::peer_lost;
    const Status status = to.sender.send(header, payload, bytes, completion);
    if (status == Status::peer_lost) lose(to);
    return status;
}

Status TcpTransport::fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) {
    auto& arrival = *static_cast<Arrival*>(rendezvous);
    if (bytes != arrival.bytes) return Status::invalid;
    auto* const to = static_cast<std::byte*>(destination);
    if (arrival.from != nullptr) {
        arrival.from->fetch(arrival, to, completion);
        return Status::in_progress;
    }
    Status status = arrival.status;
    if (status == Status::ok) status = pipe_.copy(to, arrival.own.get(), bytes);
    arrival.own.reset();
    arrivals_.give_back(&arrival);
    return status;
}

void TcpTransport::discard(void* rendezvous) {
    auto& arrival = *static_cast<Arrival*>(rendezvous);
    if (arrival.from != nullptr)
        arrival.from->discard(arrival);
    else {
        arrival.own.reset();
        arrivals_.give_back(&arrival);
    }
}

void TcpTransport::lose(TcpEndpoint& endpoint) {
    if (endpoint.connection != nullptr) lose(*endpoint.connection, "it does not take messages");
}

}  // namespace offpath::transport::tcp
