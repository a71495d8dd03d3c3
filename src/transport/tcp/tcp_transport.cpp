#include "transport/tcp/tcp_transport.h"

#include "base/log.h"
#include "transport/tcp/address.h"
#include "transport/tcp/listener.h"
#include "transport/tcp/receiver.h"
#include "transport/tcp/sender.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <utility>

namespace offpath::transport {
namespace tcp {
namespace {

// Strangers that have not said whom they want.
constexpr std::size_t max_strangers = 64;
constexpr std::size_t scratch_bytes = std::size_t{64} << 10;

// A peer that is gone without a word, and one that does not take what is sent, is lost after 8 s; as over UCX
// (ucx/tuning.cpp).
void set_up(int socket) {
    const auto set = [socket](int level, int option, int value) {
        (void)setsockopt(socket, level, option, &value, sizeof value);
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 8000);
    set(IPPROTO_TCP, TCP_SYNCNT, 2);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

Id draw_id() {
    Id id{};
    while (getrandom(id.data(), id.size(), 0) != static_cast<ssize_t>(id.size())) {
    }
    return id;
}

class TcpTransport;

struct TcpEndpoint final : Endpoint {
    Id peer{};
    std::uint32_t number = 0;
    Sender sender;
    struct Connection* connection = nullptr;  // null: it has not come yet, or is lost
    unsigned attempts = 0;                    // connections that may become it
    bool lost = false;
};

struct Connection final : ReceiverClient {
    explicit Connection(TcpTransport& transport) : owner(transport), receiver(*this) {}
    bool on_frame(const Prefix& prefix, std::span<const std::byte> header) override;
    void on_message(const Incoming& message) override;
    void over(Completion* completion, Status status) override;
    Arrival* new_arrival() override;
    void end_arrival(Arrival* arrival) override;
    PipeCopy& pipe() override;
    std::span<std::byte> scratch() override;

    TcpTransport& owner;
    int socket = -1;
    Receiver receiver;
    TcpEndpoint* endpoint = nullptr;
    bool ours = false;         // this side connects
    bool connecting = false;   // the kernel has not answered yet
    bool established = false;  // both sides know whom they talk to
    bool listed = false;       // among the ready
    Id peer{};
    std::uint32_t number = 0;
};

class TcpTransport final : public Transport {
  public:
    explicit TcpTransport(const TcpConfig& config) : config_(config), scratch_(scratch_bytes) {}
    ~TcpTransport() override;
    Status open(std::string& problem);

    void set_handler(Handler* handler) override { handler_ = handler; }
    std::vector<std::byte> address() const override { return encode(address_); }
    Status connect(std::span<const std::byte> address, Endpoint** endpoint) override;
    void disconnect(Endpoint* endpoint) override;
    Status post(Endpoint& endpoint, std::span<const std::byte> header,
                std::span<const std::byte> payload) override;
    Status send(Endpoint& endpoint, std::span<const std::byte> header, const void* payload, std::size_t bytes,
                Completion* completion) override;
    Status fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) override;
    void discard(void* rendezvous) override;
    bool checks_memory() const override { return true; }
    unsigned progress() override;
    int event_fd() const override { return epoll_; }
    Status arm() override;
    std::string describe() const override { return description_; }

  private:
    friend struct Connection;
    bool start(const Ip& ip, std::uint16_t port, TcpEndpoint& endpoint, std::string& problem);
    Connection& add(int socket);
    void accept_all();
    void make_room_for_strangers();
    bool on_hello(Connection& connection, std::span<const std::byte> header);
    bool on_welcome(Connection& connection);
    void join(Connection& connection, TcpEndpoint& endpoint);
    void say_hello(Connection& connection);
    void mark(Connection& connection, std::uint32_t events);
    void serve(Connection& connection, unsigned& work);
    void lose(Connection& connection, const char* why);
    void lose(TcpEndpoint& endpoint);
    void close(Connection& connection);
    unsigned run_over();

    TcpConfig config_;
    Address address_;
    std::vector<Ip> ips_;
    std::string description_;
    Listener listener_;
    int epoll_ = -1;
    Handler* handler_ = nullptr;
    std::vector<std::unique_ptr<TcpEndpoint>> endpoints_;
    std::vector<std::unique_ptr<Connection>> connections_;
    std::vector<Connection*> ready_, serving_;
    std::vector<std::unique_ptr<Connection>> buried_;
    std::vector<std::unique_ptr<TcpEndpoint>> buried_endpoints_;
    std::vector<TcpEndpoint*> lost_;  // on_endpoint_lost is due
    std::vector<Over> over_, running_;
    std::map<Id, std::uint32_t> numbers_;  // of the next connect()
    FreeList<Arrival> arrivals_;
    PipeCopy pipe_;
    std::vector<std::byte> scratch_;
    bool in_progress_ = false;
};

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
    owner.arrivals_.give_back(arrival);
}

PipeCopy& Connection::pipe() {
    return owner.pipe_;
}

std::span<std::byte> Connection::scratch() {
    return owner.scratch_;
}

Status TcpTransport::open(std::string& problem) {
    std::string names;
    if (const Status status = find_ips(config_.devices, ips_, names, problem); status != Status::ok)
        return status;
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0) {
        problem = fmt::format("epoll: {}", std::strerror(errno));
        return Status::system;
    }
    address_.id = draw_id();
    description_ = names;
    if (!config_.listen) return Status::ok;
    address_.ips = ips_;
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
    if (epoll_ >= 0) ::close(epoll_);
    for (const Over& each : std::exchange(over_, {}))
        if (each.completion != nullptr)
            (*each.completion)(each.status == Status::peer_lost ? Status::canceled : each.status);
}

Connection& TcpTransport::add(int socket) {
    Connection& made = *connections_.emplace_back(std::make_unique<Connection>(*this));
    set_up(socket);
    made.socket = socket;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.ptr = &made;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) != 0)
        log::error("epoll takes no further connection: {}", std::strerror(errno));
    return made;
}

bool TcpTransport::start(const Ip& ip, std::uint16_t port, TcpEndpoint& endpoint, std::string& problem) {
    sockaddr_storage to{}, from{};
    const socklen_t length = to_socket_address(ip, port, to);
    const int made = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    // From a device that was named, if it has an address of this kind.
    const auto own =
        std::find_if(ips_.begin(), ips_.end(), [&](const Ip& each) { return each.six == ip.six; });
    bool fine = made >= 0 && (config_.devices.empty() || own != ips_.end());
    if (fine && !config_.devices.empty()) {
        const socklen_t own_length = to_socket_address(*own, 0, from);
        fine = bind(made, reinterpret_cast<sockaddr*>(&from), own_length) == 0;
    }
    if (fine) {
        Connection& connection = add(made);
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
    problem = made < 0 ? std::strerror(errno) : "no address of this kind here";
    if (made >= 0) ::close(made);
    return false;
}

Status TcpTransport::connect(std::span<const std::byte> bytes, Endpoint** endpoint) {
    Address address;
    std::string problem;
    if (const Status status = decode(bytes, address, problem); status != Status::ok) {
        log::error("cannot connect: {}", problem);
        return status;
    }
    auto made = std::make_unique<TcpEndpoint>();
    made->peer = address.id;
    made->number = numbers_[address.id]++;
    if (address.port == 0) {
        if (!config_.listen) return Status::unavailable;
        // It may have connected already.
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
            log::error("no way leads to the peer: {}", problem);
            return Status::unavailable;
        }
    }
    *endpoint = made.get();
    endpoints_.push_back(std::move(made));
    return Status::ok;
}

// Both know each other: what waited goes out.
void TcpTransport::join(Connection& connection, TcpEndpoint& endpoint) {
    connection.endpoint = &endpoint;
    endpoint.connection = &connection;
    endpoint.sender.connect(connection.socket);
    if (endpoint.sender.flush(over_) != Status::ok) lose(connection, "it does not take messages");
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
    if (header.size() > max_header || payload.size() > max_post) return Status::invalid;
    if (to.lost) return Status::peer_lost;
    const Status status = to.sender.post(header, payload);
    if (status == Status::peer_lost) lose(to);
    return status;
}

Status TcpTransport::send(Endpoint& endpoint, std::span<const std::byte> header, const void* payload,
                          std::size_t bytes, Completion* completion) {
    auto& to = static_cast<TcpEndpoint&>(endpoint);
    if (header.size() > max_header) return Status::invalid;
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
    if (status == Status::ok) status = pipe_.copy(to, arrival.own.data(), bytes);
    arrivals_.give_back(&arrival);
    return status;
}

void TcpTransport::discard(void* rendezvous) {
    auto& arrival = *static_cast<Arrival*>(rendezvous);
    if (arrival.from != nullptr)
        arrival.from->discard(arrival);
    else
        arrivals_.give_back(&arrival);
}

void TcpTransport::accept_all() {
    for (int socket = listener_.accept(ips_, !config_.devices.empty()); socket >= 0;
         socket = listener_.accept(ips_, !config_.devices.empty())) {
        make_room_for_strangers();
        Connection& connection = add(socket);
        connection.receiver.connect(socket);
    }
}

void TcpTransport::make_room_for_strangers() {
    const auto stranger = [](const auto& each) { return !each->ours && !each->established; };
    if (static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(), stranger)) <
        max_strangers)
        return;
    close(**std::find_if(connections_.begin(), connections_.end(), stranger));
}

bool TcpTransport::on_hello(Connection& connection, std::span<const std::byte> header) {
    if (connection.ours || connection.established ||
        !std::equal(address_.id.begin(), address_.id.end(), header.begin()))
        return false;
    std::copy_n(header.begin() + 16, connection.peer.size(), connection.peer.begin());
    connection.number = static_cast<std::uint32_t>(read_little(header, 32, 4));
    // The same by another of our addresses: one is enough.
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
    const Status status = connection.receiver.receive(work);
    if (connection.socket < 0) return;
    if (status != Status::ok)
        return lose(connection,
                    status == Status::protocol ? "it sends nonsense" : "the connection has ended");
    if (connection.receiver.readable() && !std::exchange(connection.listed, true))
        ready_.push_back(&connection);
}

void TcpTransport::lose(TcpEndpoint& endpoint) {
    if (endpoint.connection != nullptr) lose(*endpoint.connection, "it does not take messages");
}

void TcpTransport::lose(Connection& connection, const char* why) {
    TcpEndpoint* const endpoint = std::exchange(connection.endpoint, nullptr);
    const bool established = connection.established;
    close(connection);
    if (endpoint == nullptr || endpoint->lost) return;
    if (!established && --endpoint->attempts > 0) return;  // another way may lead there
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
    // Out of the set by hand: a forked child may hold a copy of the descriptor.
    epoll_ctl(epoll_, EPOLL_CTL_DEL, connection.socket, nullptr);
    ::close(std::exchange(connection.socket, -1));
    std::erase(ready_, &connection);
    std::erase(serving_, &connection);
    const auto at = std::find_if(connections_.begin(), connections_.end(),
                                 [&](const auto& each) { return each.get() == &connection; });
    buried_.push_back(std::move(*at));
    connections_.erase(at);
    listener_.room_again(epoll_);
}

// What is called here may disconnect, send and fail again.
unsigned TcpTransport::run_over() {
    unsigned events = 0;
    running_.swap(over_);
    for (const Over& each : running_) {
        if (each.completion == nullptr) continue;
        (*each.completion)(each.status);
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

unsigned TcpTransport::progress() {
    if (in_progress_) return 0;
    in_progress_ = true;
    unsigned work = 0;
    epoll_event events[32];
    const int count = epoll_wait(epoll_, events, 32, 0);
    for (int i = 0; i < count; ++i) {
        if (events[i].data.ptr == nullptr) {
            accept_all();
            continue;
        }
        auto* const connection = static_cast<Connection*>(events[i].data.ptr);
        // An earlier event of this round may have closed it; then it lies among the buried.
        if (connection->socket >= 0) mark(*connection, events[i].events);
    }
    serving_.swap(ready_);
    while (!serving_.empty()) {
        Connection& connection = *serving_.back();
        serving_.pop_back();
        connection.listed = false;
        serve(connection, work);
    }
    if (!over_.empty() || !lost_.empty()) work += run_over();
    buried_.clear();
    buried_endpoints_.clear();
    in_progress_ = false;
    return work;
}

Status TcpTransport::arm() {
    if (!ready_.empty() || !over_.empty() || !lost_.empty()) return Status::retry;
    for (auto& connection : connections_)
        connection->receiver.prefer_much();
    return Status::ok;
}

}  // namespace
}  // namespace tcp

Status make_tcp_transport(const TcpConfig& config, std::unique_ptr<Transport>& transport,
                          std::string& problem) {
    auto made = std::make_unique<tcp::TcpTransport>(config);
    if (const Status status = made->open(problem); status != Status::ok) return status;
    transport = std::move(made);
    return Status::ok;
}

}  // namespace offpath::transport
