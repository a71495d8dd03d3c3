// The parts of a TCP transport: endpoints, which callers see; connections, each of which becomes an
// endpoint's or comes from a stranger; and the loop that serves them. They are implemented in endpoints.cpp,
// connections.cpp, handshake.cpp and tcp_transport.cpp (the rest).
//
// Ownership: the transport owns endpoints and connections. One that is closed or disconnected inside
// progress() stays in a `buried` list until progress() ends. Threads: as the transport.
#pragma once

#include "transport/tcp/address.h"
#include "transport/tcp/listener.h"
#include "transport/tcp/receiver.h"
#include "transport/tcp/sender.h"
#include "transport/tcp/tcp_transport.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace offpath::transport::tcp {

class TcpTransport;
struct Connection;

struct TcpEndpoint final : Endpoint {
    Id peer{};
    std::uint32_t number = 0;
    Sender sender;
    Connection* connection = nullptr;  // null: not connected yet, or lost
    unsigned attempts = 0;             // connections in progress that may become this endpoint's
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
    bool established = false;  // both sides have identified each other
    bool listed = false;       // in the list of ready connections
    Id peer{};
    std::uint32_t number = 0;
    std::chrono::steady_clock::time_point since;
};

class TcpTransport final : public Transport {
  public:
    explicit TcpTransport(const TcpConfig& config) : config_(config) {}
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
    void hold(Endpoint& endpoint) override { static_cast<TcpEndpoint&>(endpoint).sender.hold(); }
    void let_go(Endpoint& endpoint) override;
    Status fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) override;
    void discard(void* rendezvous) override;
    bool checks_memory() const override { return true; }
    std::size_t unsent(const Endpoint& endpoint) const override {
        return static_cast<const TcpEndpoint&>(endpoint).sender.waiting();
    }
    bool only_streams() const override { return true; }
    unsigned progress() override;
    int event_fd() const override { return epoll_; }
    Status arm() override;
    std::string describe() const override { return description_; }

  private:
    friend struct Connection;
    void forget_peers();
    std::uint32_t next_number(const Id& peer);
    bool start(const Ip& ip, std::uint16_t port, TcpEndpoint& endpoint, std::string& problem);
    // Null, with errno set: epoll cannot watch the socket.
    Connection* add(int socket);
    void accept_some();
    bool drop_stranger(std::size_t limit);
    void tick(bool on);
    void tend();
    bool on_hello(Connection& connection, std::span<const std::byte> header);
    bool on_welcome(Connection& connection);
    void join(Connection& connection, TcpEndpoint& endpoint);
    void say_hello(Connection& connection);
    void mark(Connection& connection, std::uint32_t events);
    void serve(Connection& connection, unsigned& work);
    bool look_at_last(unsigned& work);
    void lose(Connection& connection, const char* why);
    void lose(TcpEndpoint& endpoint);
    void close(Connection& connection);
    unsigned run_over();

    TcpConfig config_;
    Address address_;
    std::vector<Ip> ips_;
    std::string description_;
    Listener listener_;
    int epoll_ = -1, timer_ = -1;
    bool ticking_ = false;
    Handler* handler_ = nullptr;
    std::vector<std::unique_ptr<TcpEndpoint>> endpoints_;
    std::vector<std::unique_ptr<Connection>> connections_;
    std::vector<Connection*> ready_, serving_;
    // The connection that last brought something. progress() reads it before it asks epoll, until this many
    // rounds in a row bring nothing.
    Connection* last_ = nullptr;
    unsigned looks_left_ = 0;
    bool events_unseen_ = false;  // epoll may have events that these rounds skipped
    std::vector<std::unique_ptr<Connection>> buried_;
    std::vector<std::unique_ptr<TcpEndpoint>> buried_endpoints_;
    std::vector<TcpEndpoint*> lost_;  // on_endpoint_lost is due
    std::vector<Over> over_, running_;
    // The number of the next connect() to each peer. A listener serves one job after the other, so it takes
    // the memory at once.
    struct Numbered {
        Id peer;
        std::uint32_t next;
    };
    std::vector<Numbered> numbers_;
    std::size_t forget_at_ = 4096;  // size at which numbers_ is pruned
    FreeList<Arrival> arrivals_;
    PipeCopy pipe_;
    std::vector<std::byte> scratch_ = std::vector<std::byte>(std::size_t{64} << 10);
    bool in_progress_ = false;
};

}  // namespace offpath::transport::tcp
